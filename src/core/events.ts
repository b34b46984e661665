import type { ErrorCode } from './errors.ts';
import type { Health } from './model.ts';
import type { AttemptRecord, ToolCallRecord } from './thread.ts';
import type { CallerTrace } from './tool-host.ts';

/** What happened, told to whoever watches. Texts are masked before any sink writes them. */
export type AppEvent =
  | ({ reqId: string; tool: string } & CallEvent)
  | (Pick<Health, 'provider' | 'model' | 'scope' | 'class' | 'calls' | 'failures' | 'consecutive'> & {
      /** Something at a provider is asked no more, tried again, or asked as usual. */
      type: 'breaker.change';
      /** The call whose attempt did it; absent: another process did, or a listing of models. */
      reqId?: string;
      from: string;
      to: string;
      /** Milliseconds until it is tried again. */
      retryInMs?: number;
    })
  | { type: 'thread.compacted'; reqId: string; thread: string; upToSeq: number; window: number }
  | { type: 'warning'; reqId?: string; where: string; message: string };

/** What happened in a call of a tool. */
type CallEvent =
  | { type: 'call.start'; owner: string; client?: string; trace?: CallerTrace }
  | {
      /** What a call is about, once its arguments are understood, and again once its thread is known. Not for log files. */
      type: 'call.about';
      /** The beginning of what is asked; empty where a tool asks nothing. */
      text: string;
      /** Absolute path of the project. */
      workspace: string;
      /** With `seq`, the thread's newest turn before the call's own. */
      thread?: string;
      seq?: number;
    }
  | { type: 'call.stage'; stage: string }
  | {
      type: 'call.end';
      status: string;
      elapsedMs: number;
      code?: ErrorCode;
      /** Why it failed, in the words of the reply. */
      reason?: string;
    }
  | (Omit<AttemptRecord, 'at' | 'outcome'> & {
      type: 'model.attempt';
      /** Counted from 1 within the call. */
      attempt: number;
      outcome: AttemptRecord['outcome'] | 'cancelled';
      status?: number;
      /** Milliseconds until the next attempt, when there is one. */
      nextInMs?: number;
      /** Why the model wrote no more; absent: it did not come to an end. */
      finish?: 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other';
      /** Id of the thread that it is asked for. */
      thread?: string;
    })
  | {
      /** What the AI manager made of a call, and who was chosen. */
      type: 'route.plan';
      class: string;
      reasons: string[];
      requested: string;
      /** As `provider:model`, best first. */
      chosen: string[];
      webSearch: boolean;
      /** Who was asked what kind of question it is, and what came of it. */
      classifier?: { asked?: string; told?: string; failed?: string };
    }
  | { type: 'files.read'; embedded: string[]; skipped: { path: string; code: string }[] }
  | {
      type: 'files.written';
      /** Where it is, or was to be. */
      path: string;
      /** The error's code, when it could not be written or was not allowed to. */
      code?: ErrorCode;
    }
  | {
      /** A program that answers used a tool of its own, or that tool ended. */
      type: 'program.step';
      /** Its name, as in `cli:name`. */
      program: string;
      step: 'tool_use' | 'tool_result';
      /** The program's own name for the tool; empty where a result does not repeat it. */
      name: string;
      /** Ties a result to its use. */
      id?: string;
      /** What it was asked, or what came of it; cut. */
      detail: string;
      /** Of a result. */
      ok?: boolean;
    }
  | (Pick<ToolCallRecord, 'name' | 'outcome' | 'reason'> & {
      /** What became of a tool that a model wanted to use. */
      type: 'agent.call';
      /** As JSON, at most 500 characters. */
      args: string;
    });
