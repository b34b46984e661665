import type { OptionSpec } from '../../core/option.ts';
import { number, oneOf, onOrOff, operatorSetting, setting } from './option-parts.ts';

/** Places, logs and time limits. */
export const operationOptions = {
  home: {
    ...operatorSetting('Operation', 'POLYLOGUE_HOME'),
    flag: 'home',
    type: 'path',
    doc: "Data directory: database, logs, `config.json` and `.env`. Unset: `polylogue` in the platform's data directory.",
  },
  extensions: {
    ...operatorSetting('Operation', 'POLYLOGUE_EXTENSIONS'),
    type: 'list',
    doc: 'Modules that bring tools, providers or stores of their own: absolute paths, paths from POLYLOGUE_HOME that begin with a dot, or packages installed there. They run with all rights of the server.',
  },
  systemPrompt: {
    ...setting('Library', 'SYSTEM_PROMPT'),
    type: 'string',
    doc: 'What models are told first by `send` of the library, in place of its own text.',
  },
  systemPromptFile: {
    ...operatorSetting('Library', 'SYSTEM_PROMPT_FILE'),
    type: 'path',
    doc: 'A file with that text; SYSTEM_PROMPT wins over it.',
  },
  projectContext: {
    ...setting('Library', 'PROJECT_CONTEXT'),
    type: 'string',
    doc: 'A file of the project, such as `AGENTS.md`, whose text follows in each `send` of the library.',
  },
  forceEnvOverride: {
    ...operatorSetting('Operation', 'PAL_MCP_FORCE_ENV_OVERRIDE', 'POLYLOGUE_FORCE_ENV_OVERRIDE'),
    ...onOrOff(false),
    doc: 'Lets the values of `.env` in POLYLOGUE_HOME win over those of the environment; counts only in that file.',
  },
  logLevel: {
    ...setting('Operation', 'LOG_LEVEL'),
    flag: 'log-level',
    ...oneOf(['debug', 'info', 'warning', 'error', 'silent'], 'info'),
    synonyms: { trace: 'debug', notset: 'debug', warn: 'warning', critical: 'error', fatal: 'error', off: 'silent' },
    doc: 'Minimum severity of messages on stderr.',
  },
  callTimeoutSeconds: {
    ...setting('Operation', 'CALL_TIMEOUT_SECONDS'),
    flag: 'call-timeout',
    ...number({ min: 1, max: 86_400 }),
    doc: 'Time limit per model call in seconds, including retries. Unset: 300, longer for reasoning and local models.',
  },
  maxConcurrentCalls: {
    ...setting('Operation', 'MAX_CONCURRENT_CALLS'),
    ...number({ default: 256, min: 1, max: 10_000 }),
    doc: 'Questions to models that run at the same time; four times as many may wait, more are refused.',
  },
  maxConcurrentPerProvider: {
    ...setting('Operation', 'MAX_CONCURRENT_PER_PROVIDER'),
    type: 'list',
    doc: 'Concurrent model calls per provider, such as `ollama=2,openai=50`. Unset: 16 for local providers, 4 for `cli`, no limit for others.',
  },
  localLastAnswer: {
    ...setting('Operation', 'LOCAL_LAST_ANSWER'),
    ...onOrOff(false),
    doc: 'When no model answers a `chat`, replies with a text that says so and status `partial` instead of an error.',
  },
  consensusModelTimeoutSeconds: {
    ...setting('Operation', 'CONSENSUS_MODEL_TIMEOUT_SECONDS'),
    ...number({ default: 240, min: 1, max: 86_400 }),
    doc: 'Seconds that one model of a `consensus` may take for one verdict; the others count without it.',
  },
  consensusTimeoutSeconds: {
    ...setting('Operation', 'CONSENSUS_TIMEOUT_SECONDS'),
    ...number({ default: 600, min: 1, max: 86_400 }),
    doc: 'Seconds that a `consensus` may take in all, second round and synthesis included.',
  },
  callPatienceSeconds: {
    ...setting('Operation', 'CALL_PATIENCE_SECONDS'),
    ...number({ min: 1 }),
    doc: 'Seconds after which a call answers that it goes on as a job; unset: by the client, 50 for Codex and unknown ones, 550 for Gemini CLI, 1,500 for Claude Code.',
  },
  detachedGraceSeconds: {
    ...setting('Operation', 'DETACHED_GRACE_SECONDS'),
    ...number({ min: 0, max: 3_600 }),
    doc: 'Seconds that calls and jobs have to end after their client left, then they are interrupted; unset: 4 for a call, 30 for a job.',
  },
} as const satisfies Record<string, OptionSpec>;

/** What is written down of calls, and who is told. The names with OTEL_ are those of OpenTelemetry. */
export const telemetryOptions = {
  commsLog: {
    ...operatorSetting('Telemetry', 'COMMS_LOG'),
    ...onOrOff(false),
    doc: 'Keeps all that models are asked and answer in `logs/comms.jsonl`, secrets masked; `polylogue replay` shows it.',
  },
  commsLogMaxMb: {
    ...operatorSetting('Telemetry', 'COMMS_LOG_MAX_MB'),
    ...number({ default: 200, min: 1, max: 100_000 }),
    doc: 'Megabytes that this log may take on disk, its side files included; the oldest part goes first.',
  },
  otelDisabled: {
    ...operatorSetting('Telemetry', 'OTEL_SDK_DISABLED'),
    type: 'string',
    doc: '`true` sends no traces, whatever else is set.',
  },
  otelExporter: {
    ...operatorSetting('Telemetry', 'OTEL_TRACES_EXPORTER'),
    type: 'string',
    doc: '`otlp` sends a trace of each call to OTEL_EXPORTER_OTLP_ENDPOINT, or to http://localhost:4318; anything else, such as `none`, sends none; unset: they are sent when an endpoint is set.',
  },
  otelEndpoint: {
    ...operatorSetting('Telemetry', 'OTEL_EXPORTER_OTLP_ENDPOINT'),
    type: 'string',
    doc: 'The OTLP/HTTP collector that gets traces (as JSON), such as http://localhost:4318; `/v1/traces` is added to it.',
  },
  otelTracesEndpoint: {
    ...operatorSetting('Telemetry', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'),
    type: 'string',
    doc: 'Full URL of the trace endpoint. Nothing is appended. Overrides OTEL_EXPORTER_OTLP_ENDPOINT.',
  },
  otelProtocol: {
    ...operatorSetting('Telemetry', 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'),
    type: 'string',
    doc: 'With `grpc` no traces are sent: they go by HTTP, as JSON, alone.',
  },
  otelHeaders: {
    ...operatorSetting('Telemetry', 'OTEL_EXPORTER_OTLP_HEADERS'),
    type: 'string',
    secret: true,
    doc: 'Headers for the collector, as `name=value,name=value` with values in percent-encoding.',
  },
  otelTracesHeaders: {
    ...operatorSetting('Telemetry', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'),
    type: 'string',
    secret: true,
    doc: 'Headers for traces only. Added to OTEL_EXPORTER_OTLP_HEADERS and override it.',
  },
  otelServiceName: {
    ...operatorSetting('Telemetry', 'OTEL_SERVICE_NAME'),
    type: 'string',
    default: 'polylogue',
    doc: 'The name under which traces are sent.',
  },
  otelResourceAttributes: {
    ...operatorSetting('Telemetry', 'OTEL_RESOURCE_ATTRIBUTES'),
    type: 'string',
    doc: 'What else traces say of this process, as `name=value,name=value`.',
  },
  otelSampler: {
    ...operatorSetting('Telemetry', 'OTEL_TRACES_SAMPLER'),
    type: 'string',
    doc: '`always_off` traces no call, `always_on` each, `traceidratio` the part that OTEL_TRACES_SAMPLER_ARG says. Unset, or with `parentbased_` before it, calls that are part of a trace of their caller follow that.',
  },
  otelSamplerArg: {
    ...operatorSetting('Telemetry', 'OTEL_TRACES_SAMPLER_ARG'),
    type: 'string',
    doc: 'The part of calls that is traced, from 0 to 1; unset, or no such number: all.',
  },
  otelContent: {
    ...operatorSetting('Telemetry', 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'),
    type: 'string',
    doc: 'With `true` (or `SPAN_ONLY`) traces hold what models were asked and what they answered, secrets masked; else numbers and names alone.',
  },
} as const satisfies Record<string, OptionSpec>;
