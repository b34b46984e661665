import type { JsonObject } from '../../core/json.ts';
import type { CliOutput } from './command/output.ts';
import type { ConfiguredCli } from './configured-clis.ts';

/** Stands before the colon of their names. */
export const cliProviderId = 'cli';

/** Set for whatever a CLI starts: its processes are known by the value, and a server of ours among them by the name. */
export const markName = 'POLYLOGUE_CLI_RUN';

export interface CliRequest {
  name: string;
  /** Which of its models is to answer; absent: its own choice. */
  model?: string;
  prompt: string;
  /** Its own session to go on with; `prompt` is then only what is new. */
  session?: string;
  /** The directory it works in, absolute; absent: the project of this process. */
  root?: string;
  /** A role of its configuration. */
  role?: string;
  /** It may change files; otherwise it is started so that it only reads. */
  mayWrite: boolean;
  /** The call it works for. */
  reqId: string;
  tool: string;
  /** Aborted: the program is ended, with all that it started. */
  signal: AbortSignal;
  /** Gets the answer as it comes; what was given stays part of it. */
  onText(delta: string): void;
  /** Told of whatever else the program does. */
  onWork(note: string): void;
}

export interface CliResponse extends Pick<CliOutput, 'session' | 'usage' | 'usageOfSession' | 'costUsd'> {
  /** `output_limit`: it said more than is kept, and was ended. */
  finish: 'stop' | 'output_limit';
  /** What else is known of how it answered, for the reply. */
  metadata: JsonObject;
  /** What it did with its own tools, in its order; cut. */
  steps: JsonObject[];
  /** One sentence each. */
  warnings: string[];
}

/** Class of the error of a session that the program does not know any more. */
export const sessionLost = 'session_lost';

export interface CliRunner {
  /** Those that can be named. */
  list: readonly Pick<ConfiguredCli, 'name' | 'window' | 'timeLimitMs'>[];
  /** Names of those whose executable is on this machine now. Never rejects. */
  installed(): Promise<ReadonlySet<string>>;
  /** Runs a program to its end. Throws an `AppError`; of class `session_lost` before anything was answered. */
  ask(question: CliRequest): Promise<CliResponse>;
  /** Resolves when none that was started is left. Never throws. */
  close(): Promise<void>;
}

/** `gemini/gemini-3-pro` is the program `gemini`, asked for its model `gemini-3-pro`. */
export function splitCliId(id: string): { name: string; model?: string } {
  const slash = id.indexOf('/');
  return slash === -1 ? { name: id } : { name: id.slice(0, slash), model: id.slice(slash + 1) };
}
