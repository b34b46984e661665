import type { OptionSpec } from '../../core/option.ts';
import { between, list, number, onOrOff, operator, path, setting, text, textOr } from './option-parts.ts';

/** The daemon, `polylogue serve`. */
export const serverOptions = {
  // `polylogue serve`: where it listens, to whom, and how much it takes.
  serveHost: operator('Daemon', textOr('127.0.0.1'), ['POLYLOGUE_HOST', 'EXAI_WS_HOST'], {
    doc: 'The address that `polylogue serve` listens on; one that other machines reach needs a token.',
  }),
  servePort: operator('Daemon', number(8765, 0, 65_535), ['POLYLOGUE_PORT', 'EXAI_WS_PORT'], {
    doc: 'The port of `polylogue serve`; 0: any that is free.',
  }),
  token: operator('Daemon', text, ['POLYLOGUE_TOKEN', 'EXAI_WS_TOKEN'], {
    secret: true,
    doc: "The operator's own token, at least 16 characters; its sender may do everything. Unset: `polylogue serve` makes one, where there is no file of tokens either.",
  }),
  tokensFile: operator('Daemon', path, ['POLYLOGUE_TOKENS_FILE'], {
    doc: 'JSON file with additional tokens and their permissions (see `docs/daemon.md`).',
  }),
  serveHosts: operator('Daemon', list, ['POLYLOGUE_HOSTS'], {
    doc: 'Further host names that clients call the daemon by, such as that of a proxy; requests to other names are refused.',
  }),
  serveOrigins: operator('Daemon', list, ['POLYLOGUE_ORIGINS'], {
    doc: 'Web pages that may call the daemon and read what it answers (CORS), such as `https://app.example`. Unset: its own alone.',
  }),
  maxBodyBytes: operator(
    'Daemon',
    number(33_554_432, 1_024, 268_435_456),
    ['POLYLOGUE_MAX_BODY_BYTES', 'EXAI_WS_MAX_BYTES'],
    { doc: 'Maximum size in bytes of one message on standard input, or of one request or frame to the daemon.' },
  ),
  sessionCalls: operator(
    'Daemon',
    number(256, 1, 10_000),
    ['POLYLOGUE_SESSION_CALLS', 'EXAI_WS_SESSION_MAX_INFLIGHT'],
    { doc: 'Calls of one session that the daemon works on at the same time; the others wait.' },
  ),
  daemonCalls: operator('Daemon', number(1_024, 1, 10_000), ['POLYLOGUE_DAEMON_CALLS', 'EXAI_WS_GLOBAL_MAX_INFLIGHT'], {
    doc: 'Calls of all sessions that the daemon works on at the same time; the others wait.',
  }),
  queuedCalls: operator('Daemon', number(1_024, 0, 100_000), ['POLYLOGUE_QUEUED_CALLS'], {
    doc: 'Calls that may wait for their turn; more are refused with OVER_CAPACITY.',
  }),
  requestsPerMinute: operator('Daemon', number(6_000, 1, 10_000_000), ['POLYLOGUE_REQUESTS_PER_MINUTE'], {
    doc: 'Requests a minute that one token may send to the daemon, a sixth of them at once.',
  }),
  kimiCalls: operator('Daemon', number(6, 1, 10_000), ['POLYLOGUE_KIMI_CALLS', 'EXAI_WS_KIMI_MAX_INFLIGHT'], {
    doc: 'Questions to Kimi that the daemon asks at the same time, where MAX_CONCURRENT_PER_PROVIDER says nothing of it.',
  }),
  glmCalls: operator('Daemon', number(4, 1, 10_000), ['POLYLOGUE_GLM_CALLS', 'EXAI_WS_GLM_MAX_INFLIGHT'], {
    doc: 'Questions to GLM that the daemon asks at the same time, where MAX_CONCURRENT_PER_PROVIDER says nothing of it.',
  }),
  sessionIdleMinutes: operator('Daemon', number(60, 1, 10_080), ['POLYLOGUE_SESSION_IDLE_MINUTES'], {
    doc: 'Minutes of inactivity after which a legacy MCP session (2025 protocol) ends.',
  }),
  maxSessions: operator('Daemon', number(2_000, 1, 100_000), ['POLYLOGUE_MAX_SESSIONS'], {
    doc: "The most sessions of 2025 clients at a time; a new one replaces the caller's own that was idle longest.",
  }),
  sessionsPerToken: operator('Daemon', between(1, 100_000), ['POLYLOGUE_SESSIONS_PER_TOKEN'], {
    doc: 'The most sessions, WebSockets and listening streams (each for itself) that one token may have at a time. Unset: half of POLYLOGUE_MAX_SESSIONS where several tokens hold, else all of it.',
  }),
  drainSeconds: operator('Daemon', number(30, 0, 3_600), ['POLYLOGUE_DRAIN_SECONDS'], {
    doc: 'Seconds that calls have to end once the daemon was told to stop (SIGTERM); a second signal ends it at once.',
  }),
  // The WebSocket endpoint of the daemon, at `/ws`. The names in EXAI_WS are those that clients of another server know.
  wsHelloSeconds: setting('Daemon', number(15, 1, 300), ['POLYLOGUE_WS_HELLO_TIMEOUT', 'EXAI_WS_HELLO_TIMEOUT'], {
    fractional: true,
    doc: 'Seconds that a client of the frame protocol has for its first message.',
  }),
  wsPingSeconds: setting('Daemon', number(45, 0, 3_600), ['POLYLOGUE_WS_PING_INTERVAL', 'EXAI_WS_PING_INTERVAL'], {
    fractional: true,
    doc: 'Seconds between two pings of a WebSocket; 0: none are sent, and silence closes nothing.',
  }),
  wsSilenceSeconds: setting('Daemon', number(120, 1, 3_600), ['POLYLOGUE_WS_PING_TIMEOUT', 'EXAI_WS_PING_TIMEOUT'], {
    fractional: true,
    doc: 'Seconds without a sign of life, an answer to a ping included, after which a WebSocket is closed.',
  }),
  wsProgressSeconds: setting(
    'Daemon',
    number(8, 0.1, 600),
    ['POLYLOGUE_WS_PROGRESS_INTERVAL', 'EXAI_WS_PROGRESS_INTERVAL_SECS'],
    {
      fractional: true,
      doc: 'Seconds between two `progress` messages of a call in the frame protocol; some clients take 10 seconds of silence for an end.',
    },
  ),
  wsResultSeconds: setting('Daemon', number(600, 1, 86_400), ['POLYLOGUE_WS_RESULT_TTL', 'EXAI_WS_RESULT_TTL'], {
    doc: 'Seconds that results, and sessions whose client is gone, are kept for a client that comes back.',
  }),
  wsCallSeconds: setting('Daemon', number(90, 1, 86_400), ['POLYLOGUE_WS_CALL_TIMEOUT', 'EXAI_WS_CALL_TIMEOUT'], {
    fractional: true,
    doc: 'Seconds that a call in the frame protocol may take, unless the call sets a limit.',
  }),
  wsFilesCallSeconds: setting('Daemon', number(300, 1, 86_400), ['POLYLOGUE_WS_FILES_CALL_TIMEOUT'], {
    doc: 'Time limit in seconds for frame-protocol calls with files or web search.',
  }),
  wsReasoningCallSeconds: setting('Daemon', number(1_200, 1, 86_400), ['POLYLOGUE_WS_REASONING_CALL_TIMEOUT'], {
    doc: 'Time limit in seconds for frame-protocol calls to reasoning models.',
  }),
  wsCompatText: setting('Daemon', onOrOff(true), ['EXAI_WS_COMPAT_TEXT', 'POLYLOGUE_WS_COMPAT_TEXT'], {
    doc: 'Adds all outputs of a result as one `text`, for older clients of the frame protocol.',
  }),
  wsNotJoined: setting('Daemon', list, ['POLYLOGUE_WS_NOT_JOINED', 'EXAI_WS_DISABLE_COALESCE_FOR_TOOLS'], {
    doc: 'Tools whose identical calls in one session of the frame protocol are made one by one, instead of once for all that come while it runs.',
  }),
} as const satisfies Record<string, OptionSpec>;
