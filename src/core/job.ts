import type { JobId, ThreadId } from './ids.ts';
import type { JsonObject } from './json.ts';

/** What a call answered, before it is shown in one form or another. */
export interface JobReply {
  isError: boolean;
  document: JsonObject;
}

/** A call that outlasted its caller's patience and goes on without him. */
export interface Job {
  id: JobId;
  /** Who started it; nobody else ever sees it. */
  owner: string;
  tool: string;
  /** The thread it works on, as far as that is known. */
  thread?: ThreadId;
  /** `failed`: the call ended with an error reply. `interrupted`: its process ended before it did. */
  status: 'running' | 'done' | 'failed' | 'cancelled' | 'interrupted';
  /** Epoch milliseconds, as all times of a job. */
  createdAt: number;
  updatedAt: number;
  expiresAt: number;
  /** The process that does the work: it holds a lease under this name for as long as it lives. */
  holder: string;
  /** Absent while it runs, and when its process died. */
  reply?: JobReply;
}
