import type { FrameServerOptions } from './frame-server.ts';
import type { WebSocketRules } from './websocket.ts';

/** The endpoint's settings as an operator writes them, in seconds. */
export interface WsSettings {
  helloSeconds: number;
  pingSeconds: number;
  silenceSeconds: number;
  progressSeconds: number;
  resultSeconds: number;
  callSeconds: number;
  filesCallSeconds: number;
  reasoningCallSeconds: number;
  compatText: boolean;
  notJoined: readonly string[];
  /** Connections, and sessions of the frame protocol. */
  maxConnections: number;
}

/** Bytes that may wait for one client. */
const maxBuffered = 1_048_576;
/** Characters of the messages of one session whose calls run or wait. */
const maxAsked = 67_108_864;
/** Characters of results that are kept, of one session and of all. */
const maxPerClient = 8_388_608;
const maxKept = 134_217_728;

export function wsRules(settings: WsSettings): { rules: WebSocketRules } & Pick<FrameServerOptions, 'ceilings'> {
  const { compatText, notJoined, maxConnections } = settings;
  return {
    ceilings: {
      quick: settings.callSeconds * 1_000,
      files: settings.filesCallSeconds * 1_000,
      reasoning: settings.reasoningCallSeconds * 1_000,
    },
    rules: {
      pingMs: settings.pingSeconds * 1_000,
      silenceMs: settings.silenceSeconds * 1_000,
      maxBuffered,
      maxKept,
      maxConnections,
      frames: {
        helloMs: settings.helloSeconds * 1_000,
        progressMs: settings.progressSeconds * 1_000,
        resultMs: settings.resultSeconds * 1_000,
        maxCharacters: maxPerClient,
        maxAsked,
        compatText,
        notJoined,
      },
    },
  };
}
