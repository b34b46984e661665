import type { OptionSpec } from '../../core/option.ts';
import { number, onOrOff, operatorSetting, setting } from './option-parts.ts';

/** `polylogue serve`: where it listens, to whom, and how much it takes. */
export const serverOptions = {
  serveHost: {
    ...operatorSetting('Daemon', 'POLYLOGUE_HOST', 'EXAI_WS_HOST'),
    type: 'string',
    default: '127.0.0.1',
    doc: 'The address that `polylogue serve` listens on; one that other machines reach needs a token.',
  },
  servePort: {
    ...operatorSetting('Daemon', 'POLYLOGUE_PORT', 'EXAI_WS_PORT'),
    ...number({ default: 8765, min: 0, max: 65_535 }),
    doc: 'The port of `polylogue serve`; 0: any that is free.',
  },
  token: {
    ...operatorSetting('Daemon', 'POLYLOGUE_TOKEN', 'EXAI_WS_TOKEN'),
    type: 'string',
    secret: true,
    doc: "The operator's own token, at least 16 characters; whoever sends it may do everything. Unset: `polylogue serve` makes one, where there is no file of tokens either.",
  },
  tokensFile: {
    ...operatorSetting('Daemon', 'POLYLOGUE_TOKENS_FILE'),
    type: 'path',
    doc: 'JSON file with additional tokens and their permissions (see `docs/daemon.md`).',
  },
  serveHosts: {
    ...operatorSetting('Daemon', 'POLYLOGUE_HOSTS'),
    type: 'list',
    doc: 'Further host names that clients call the daemon by, such as that of a proxy; requests to other names are refused.',
  },
  serveOrigins: {
    ...operatorSetting('Daemon', 'POLYLOGUE_ORIGINS'),
    type: 'list',
    doc: 'Web pages that may call the daemon and read what it answers (CORS), such as `https://app.example`. Unset: its own alone.',
  },
  maxBodyBytes: {
    ...operatorSetting('Daemon', 'POLYLOGUE_MAX_BODY_BYTES', 'EXAI_WS_MAX_BYTES'),
    ...number({ default: 33_554_432, min: 1_024, max: 268_435_456 }),
    doc: 'The most bytes of one message on standard input, or of one request or frame to the daemon.',
  },
  sessionCalls: {
    ...operatorSetting('Daemon', 'POLYLOGUE_SESSION_CALLS', 'EXAI_WS_SESSION_MAX_INFLIGHT'),
    ...number({ default: 256, min: 1, max: 10_000 }),
    doc: 'Calls of one session that the daemon works on at the same time; the others wait.',
  },
  daemonCalls: {
    ...operatorSetting('Daemon', 'POLYLOGUE_DAEMON_CALLS', 'EXAI_WS_GLOBAL_MAX_INFLIGHT'),
    ...number({ default: 1_024, min: 1, max: 10_000 }),
    doc: 'Calls of all sessions that the daemon works on at the same time; the others wait.',
  },
  queuedCalls: {
    ...operatorSetting('Daemon', 'POLYLOGUE_QUEUED_CALLS'),
    ...number({ default: 1_024, min: 0, max: 100_000 }),
    doc: 'Calls that may wait for their turn; more are refused with OVER_CAPACITY.',
  },
  requestsPerMinute: {
    ...operatorSetting('Daemon', 'POLYLOGUE_REQUESTS_PER_MINUTE'),
    ...number({ default: 6_000, min: 1, max: 10_000_000 }),
    doc: 'Requests a minute that one token may send to the daemon, a sixth of them at once.',
  },
  kimiCalls: {
    ...operatorSetting('Daemon', 'POLYLOGUE_KIMI_CALLS', 'EXAI_WS_KIMI_MAX_INFLIGHT'),
    ...number({ default: 6, min: 1, max: 10_000 }),
    doc: 'Questions to Kimi that the daemon asks at the same time, where MAX_CONCURRENT_PER_PROVIDER says nothing of it.',
  },
  glmCalls: {
    ...operatorSetting('Daemon', 'POLYLOGUE_GLM_CALLS', 'EXAI_WS_GLM_MAX_INFLIGHT'),
    ...number({ default: 4, min: 1, max: 10_000 }),
    doc: 'Questions to GLM that the daemon asks at the same time, where MAX_CONCURRENT_PER_PROVIDER says nothing of it.',
  },
  sessionIdleMinutes: {
    ...operatorSetting('Daemon', 'POLYLOGUE_SESSION_IDLE_MINUTES'),
    ...number({ default: 60, min: 1, max: 10_080 }),
    doc: 'Minutes of inactivity after which a legacy MCP session (2025 protocol) ends.',
  },
  maxSessions: {
    ...operatorSetting('Daemon', 'POLYLOGUE_MAX_SESSIONS'),
    ...number({ default: 2_000, min: 1, max: 100_000 }),
    doc: "The most sessions of 2025 clients at a time; the caller's own one that was idle longest makes room for a new one.",
  },
  sessionsPerToken: {
    ...operatorSetting('Daemon', 'POLYLOGUE_SESSIONS_PER_TOKEN'),
    ...number({ min: 1, max: 100_000 }),
    doc: 'The most sessions, WebSockets and listening streams (each for itself) that one token may have at a time. Unset: half of POLYLOGUE_MAX_SESSIONS where several tokens hold, else all of it.',
  },
  drainSeconds: {
    ...operatorSetting('Daemon', 'POLYLOGUE_DRAIN_SECONDS'),
    ...number({ default: 30, min: 0, max: 3_600 }),
    doc: 'Seconds that calls have to end once the daemon was told to stop (SIGTERM); a second signal ends it at once.',
  },
} as const satisfies Record<string, OptionSpec>;

/** How vendors are reached. */
export const networkOptions = {
  httpsProxy: {
    ...operatorSetting('Network', 'HTTPS_PROXY', 'https_proxy'),
    type: 'string',
    doc: 'The proxy that leads to https addresses, such as `http://proxy.example:3128`; unset: none.',
  },
  httpProxy: {
    ...operatorSetting('Network', 'HTTP_PROXY', 'http_proxy'),
    type: 'string',
    doc: 'The proxy that leads to http addresses; unset: none.',
  },
  noProxy: {
    ...operatorSetting('Network', 'NO_PROXY', 'no_proxy'),
    type: 'list',
    doc: 'Hosts that are reached without the proxy, such as `.example.org`; this machine always is.',
  },
  extraCaCerts: {
    ...operatorSetting('Network', 'NODE_EXTRA_CA_CERTS'),
    type: 'path',
    doc: 'A PEM file of further certificate authorities to trust, such as that of a company proxy.',
  },
} as const satisfies Record<string, OptionSpec>;

/** The WebSocket endpoint of the daemon, at `/ws`. The names in EXAI_WS are those that clients of another server know. */
export const wsOptions = {
  wsHelloSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_HELLO_TIMEOUT', 'EXAI_WS_HELLO_TIMEOUT'),
    ...number({ default: 15, min: 1, max: 300 }),
    doc: 'Seconds that a client of the frame protocol has for its first message.',
  },
  wsPingSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_PING_INTERVAL', 'EXAI_WS_PING_INTERVAL'),
    ...number({ default: 45, min: 1, max: 3_600 }),
    doc: 'Seconds between two pings of a WebSocket.',
  },
  wsSilenceSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_PING_TIMEOUT', 'EXAI_WS_PING_TIMEOUT'),
    ...number({ default: 120, min: 1, max: 3_600 }),
    doc: 'Seconds without a sign of life, an answer to a ping included, after which a WebSocket is closed.',
  },
  wsProgressSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_PROGRESS_INTERVAL', 'EXAI_WS_PROGRESS_INTERVAL_SECS'),
    ...number({ default: 8, min: 0.1, max: 600, fractional: true }),
    doc: 'Seconds between two `progress` messages of a call in the frame protocol; some clients take 10 seconds of silence for an end.',
  },
  wsResultSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_RESULT_TTL', 'EXAI_WS_RESULT_TTL'),
    ...number({ default: 600, min: 1, max: 86_400 }),
    doc: 'Seconds that results, and sessions whose client is gone, are kept for a client that comes back.',
  },
  wsCallSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_CALL_TIMEOUT', 'EXAI_WS_CALL_TIMEOUT'),
    ...number({ default: 90, min: 1, max: 86_400 }),
    doc: 'Seconds that a call in the frame protocol may take, where it brings no limit of its own.',
  },
  wsFilesCallSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_FILES_CALL_TIMEOUT'),
    ...number({ default: 300, min: 1, max: 86_400 }),
    doc: 'Time limit in seconds for frame-protocol calls with files or web search.',
  },
  wsReasoningCallSeconds: {
    ...setting('Daemon', 'POLYLOGUE_WS_REASONING_CALL_TIMEOUT'),
    ...number({ default: 1_200, min: 1, max: 86_400 }),
    doc: 'Time limit in seconds for frame-protocol calls to reasoning models.',
  },
  wsCompatText: {
    ...setting('Daemon', 'EXAI_WS_COMPAT_TEXT', 'POLYLOGUE_WS_COMPAT_TEXT'),
    ...onOrOff(true),
    doc: 'Adds all outputs of a result as one `text`, for older clients of the frame protocol.',
  },
  wsNotJoined: {
    ...setting('Daemon', 'POLYLOGUE_WS_NOT_JOINED', 'EXAI_WS_DISABLE_COALESCE_FOR_TOOLS'),
    type: 'list',
    doc: 'Tools whose identical calls in one session of the frame protocol are made one by one, instead of once for all that come while it runs.',
  },
} as const satisfies Record<string, OptionSpec>;
