import type { OptionSpec } from '../../core/option.ts';
import { between, list, number, onOrOff, operator, path, setting, text, textOr } from './option-parts.ts';

const dollars = { type: 'number', min: 0, fractional: true } as const;

const cap = (env: string, flag: string, whose: string) =>
  operator('Spending', dollars, [env, flag], {
    doc: `Cost limit for ${whose}, in US dollars. A call that could exceed it is refused before any model is asked. Unset: no limit.`,
  });

/** How this machine is used: its folders and its network, what is written down, spent and started. */
export const operationOptions = {
  // Places, logs and time limits.
  home: operator('Operation', path, ['POLYLOGUE_HOME', '--home'], {
    doc: "Data directory: database, logs, `config.json` and `.env`. Unset: `polylogue` in the platform's data directory.",
  }),
  extensions: operator('Operation', list, ['POLYLOGUE_EXTENSIONS'], {
    doc: 'Modules with custom tools, providers or stores: absolute paths, paths from POLYLOGUE_HOME that begin with a dot, or packages installed there. They run with all rights of the server.',
  }),
  systemPrompt: setting('Library', text, ['SYSTEM_PROMPT'], {
    doc: 'System prompt that `send` of the library uses instead of its default.',
  }),
  systemPromptFile: operator('Library', path, ['SYSTEM_PROMPT_FILE'], {
    doc: 'A file with that text; SYSTEM_PROMPT overrides it.',
  }),
  projectContext: setting('Library', text, ['PROJECT_CONTEXT'], {
    doc: 'A file of the project, such as `AGENTS.md`, whose text follows in each `send` of the library.',
  }),
  forceEnvOverride: operator(
    'Operation',
    onOrOff(false),
    ['PAL_MCP_FORCE_ENV_OVERRIDE', 'POLYLOGUE_FORCE_ENV_OVERRIDE'],
    { doc: 'Lets the values of `.env` in POLYLOGUE_HOME override the environment; counts only in that file.' },
  ),
  logLevel: setting('Operation', textOr('info'), ['LOG_LEVEL', '--log-level'], {
    isShared: true,
    choices: ['debug', 'info', 'warning', 'error', 'silent'],
    synonyms: { trace: 'debug', notset: 'debug', warn: 'warning', critical: 'error', fatal: 'error', off: 'silent' },
    doc: 'Minimum severity of messages on stderr.',
  }),
  callTimeoutSeconds: setting('Operation', between(1, 86_400), ['CALL_TIMEOUT_SECONDS', '--call-timeout'], {
    doc: 'Time limit per model call in seconds, including retries. Unset: 300, longer for reasoning and local models.',
  }),
  maxConcurrentCalls: setting('Operation', number(256, 1, 10_000), ['MAX_CONCURRENT_CALLS'], {
    doc: 'Questions to models that run at the same time; four times as many may wait, more are refused.',
  }),
  maxConcurrentPerProvider: setting('Operation', list, ['MAX_CONCURRENT_PER_PROVIDER'], {
    doc: 'Concurrent model calls per provider, such as `ollama=2,openai=50`. Unset: 16 for local providers, 4 for `cli`, no limit for others.',
  }),
  localLastAnswer: setting('Operation', onOrOff(false), ['LOCAL_LAST_ANSWER'], {
    doc: 'When no model answers a `chat`, replies with a text that says so and status `partial` instead of an error.',
  }),
  consensusModelTimeoutSeconds: setting('Operation', number(240, 1, 86_400), ['CONSENSUS_MODEL_TIMEOUT_SECONDS'], {
    doc: 'Seconds that one model of a `consensus` may take for one verdict; the others count without it.',
  }),
  consensusTimeoutSeconds: setting('Operation', number(600, 1, 86_400), ['CONSENSUS_TIMEOUT_SECONDS'], {
    doc: 'Seconds that a `consensus` may take in all, second round and synthesis included.',
  }),
  callPatienceSeconds: setting('Operation', { type: 'number', min: 1 }, ['CALL_PATIENCE_SECONDS'], {
    doc: 'Seconds after which a call answers that it goes on as a job; unset: by the client, 50 for Codex and unknown ones, 550 for Gemini CLI, 1,500 for Claude Code.',
  }),
  detachedGraceSeconds: setting('Operation', between(0, 3_600), ['DETACHED_GRACE_SECONDS'], {
    doc: 'Seconds that calls and jobs have to end after their client left, then they are interrupted; unset: 4 for a call, 30 for a job.',
  }),
  // How vendors are reached.
  httpsProxy: operator('Network', text, ['HTTPS_PROXY', 'https_proxy'], {
    doc: 'The proxy that leads to https addresses, such as `http://proxy.example:3128`; unset: none.',
  }),
  httpProxy: operator('Network', text, ['HTTP_PROXY', 'http_proxy'], {
    doc: 'The proxy that leads to http addresses; unset: none.',
  }),
  noProxy: operator('Network', list, ['NO_PROXY', 'no_proxy'], {
    doc: 'Hosts that are reached without the proxy, such as `.example.org`; this machine always is.',
  }),
  extraCaCerts: operator('Network', path, ['NODE_EXTRA_CA_CERTS'], {
    doc: 'A PEM file of further certificate authorities to trust, such as that of a company proxy.',
  }),
  // What is written down of calls, and who is told. The names with OTEL_ are those of OpenTelemetry.
  commsLog: operator('Telemetry', onOrOff(false), ['COMMS_LOG'], {
    doc: 'Keeps all that models are asked and answer in `logs/comms.jsonl`, secrets masked; `polylogue replay` shows it.',
  }),
  commsLogMaxMb: operator('Telemetry', number(200, 1, 100_000), ['COMMS_LOG_MAX_MB'], {
    doc: 'Megabytes that this log may take on disk, its side files included; the oldest part goes first.',
  }),
  otelDisabled: operator('Telemetry', text, ['OTEL_SDK_DISABLED'], {
    doc: '`true` sends no traces, whatever else is set.',
  }),
  otelExporter: operator('Telemetry', text, ['OTEL_TRACES_EXPORTER'], {
    doc: '`otlp` sends a trace of each call to OTEL_EXPORTER_OTLP_ENDPOINT, or to http://localhost:4318; anything else, such as `none`, sends none; unset: they are sent when an endpoint is set.',
  }),
  otelEndpoint: operator('Telemetry', text, ['OTEL_EXPORTER_OTLP_ENDPOINT'], {
    doc: 'The OTLP/HTTP collector that gets traces (as JSON), such as http://localhost:4318; `/v1/traces` is added to it.',
  }),
  otelTracesEndpoint: operator('Telemetry', text, ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'], {
    doc: 'Full URL of the trace endpoint. Nothing is appended. Overrides OTEL_EXPORTER_OTLP_ENDPOINT.',
  }),
  otelProtocol: operator('Telemetry', text, ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'], {
    doc: 'With `grpc` no traces are sent: they go by HTTP, as JSON, alone.',
  }),
  otelHeaders: operator('Telemetry', text, ['OTEL_EXPORTER_OTLP_HEADERS'], {
    secret: true,
    doc: 'Headers for the collector, as `name=value,name=value` with values in percent-encoding.',
  }),
  otelTracesHeaders: operator('Telemetry', text, ['OTEL_EXPORTER_OTLP_TRACES_HEADERS'], {
    secret: true,
    doc: 'Headers for traces only. Added to OTEL_EXPORTER_OTLP_HEADERS and override it.',
  }),
  otelServiceName: operator('Telemetry', textOr('polylogue'), ['OTEL_SERVICE_NAME'], {
    doc: 'The name under which traces are sent.',
  }),
  otelResourceAttributes: operator('Telemetry', text, ['OTEL_RESOURCE_ATTRIBUTES'], {
    doc: 'What else traces say of this process, as `name=value,name=value`.',
  }),
  otelSampler: operator('Telemetry', text, ['OTEL_TRACES_SAMPLER'], {
    doc: '`always_off` traces no call, `always_on` each, `traceidratio` the part that OTEL_TRACES_SAMPLER_ARG says. Unset, or with `parentbased_` before it, calls that are part of a trace of their caller follow that.',
  }),
  otelSamplerArg: operator('Telemetry', text, ['OTEL_TRACES_SAMPLER_ARG'], {
    doc: 'The part of calls that is traced, from 0 to 1; unset, or no such number: all.',
  }),
  otelContent: operator('Telemetry', text, ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'], {
    doc: 'With `true` (or `SPAN_ONLY`) traces hold what models were asked and what they answered, secrets masked; else numbers and names alone.',
  }),
  // What may be spent, and how often a client may call.
  maxCostPerRequest: cap('MAX_COST_PER_REQUEST', '--max-cost-per-request', 'one tool call, all its models included'),
  maxCostPerThread: cap('MAX_COST_PER_THREAD', '--max-cost-per-thread', 'all calls on one thread'),
  maxCostPerDay: cap(
    'MAX_COST_PER_DAY',
    '--max-cost-per-day',
    'one day (UTC) of one owner, across all processes that share the store',
  ),
  autoCostLimit: operator('Spending', { ...dollars, default: 2 }, ['AUTO_COST_LIMIT', '--auto-cost-limit'], {
    doc: 'US dollars that one call of a tool may cost where no model is named; `auto` chooses, and shortens files and answers, to stay within it.',
  }),
  allowUnpricedModels: operator('Spending', onOrOff(false), ['ALLOW_UNPRICED_MODELS'], {
    doc: 'Asks models whose price nobody knows even under a limit on costs, as if they were free. Local ones always are.',
  }),
  rateLimits: operator('Spending', list, ['RATE_LIMITS', '--rate-limits'], {
    doc: 'Calls per minute per client and tool, such as `chat=10,analyze=5`. `on`: chat 10; analyze, codereview, debug 5; thinkdeep, precommit 3. Unset: no limit.',
  }),
  // Other vendors' agents with a command line.
  cliClients: operator('Programs', path, ['CLI_CLIENTS_CONFIG_PATH', 'POLYLOGUE_CLIS'], {
    doc: 'A JSON file, or a directory of them, each about one CLI for `clink` and `cli:name`, in the format of docs/clis.md; read after those in `clis` of POLYLOGUE_HOME.',
  }),
  cliAllowWrites: operator('Programs', onOrOff(false), ['CLI_ALLOW_WRITES'], {
    doc: 'Lets CLIs change files where a call of `clink` says `allow_writes`; otherwise all of them are started so that they only read.',
  }),
  cliTimeoutSeconds: setting('Programs', number(1_800, 1, 86_400), ['CLI_TIMEOUT_SECONDS'], {
    doc: 'Seconds that a CLI may work on one request; then it is ended with all that it started.',
  }),
} as const satisfies Record<string, OptionSpec>;
