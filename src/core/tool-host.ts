import type { AppError } from './errors.ts';
import type { ThreadId } from './ids.ts';
import type { Job, JobReply } from './job.ts';
import type { JsonObject } from './json.ts';

/** Who calls, and from where. */
export interface Principal {
  /** Whose threads these are; `local` on stdio. */
  owner: string;
  /** The project directory that relative paths start from and that threads belong to. */
  root: string;
  /** Name of the MCP client, when it told. */
  client?: string;
}

/** What a caller may use of what a process offers. Absent members leave it as it is; none of them adds to it. */
export interface Permissions {
  /** Groups of tools. */
  toolsets?: readonly string[] | undefined;
  /** The only tools, by names in which `*` stands for any letters. */
  allow?: readonly string[] | undefined;
  /** Tools to leave out, written the same way; it wins over `allow`. */
  deny?: readonly string[] | undefined;
  /** Nothing that writes or destroys. */
  readOnly: boolean;
  /** The directories whose files may be read, each within those of the process. The first is the caller's project. */
  roots?: readonly string[] | undefined;
  /** US dollars that the owner's calls may cost on one day (UTC). */
  maxCostPerDay?: number | undefined;
}

/** How far a call is. */
export interface ProgressUpdate {
  /** Grows with every update of one call. */
  progress: number;
  message: string;
}

/** Something that the work of a call wants to know of its caller. */
export interface UserQuestion {
  /** Unique within the call. */
  key: string;
  message: string;
  /** JSON Schema of the answer: an object of plain fields. */
  schema: JsonObject;
}

export type UserAnswer = { action: 'accept'; content: Record<string, unknown> } | { action: 'decline' | 'cancel' };

/** What a call is expected to be, as far as that can be said before it begins: how long it may take follows from it. */
export type CallKind = 'quick' | 'files' | 'reasoning';

/** How a transport lets a caller come again for a call whose reply did not arrive. */
export interface CallSession {
  /**
   * Aborted when the caller is gone without having cancelled: what was paid for goes on, for who sends the same call again.
   * One signal for each client: what comes with the same one comes from the same client.
   */
  gone: AbortSignal;
  /**
   * Aborted when the caller can send nothing more here: it could not come back for a job, and whether it reads its reply is
   * unknown, so that whoever sends the same call may have it. Absent: it can.
   */
  inputEnded?: AbortSignal | undefined;
  /** Aborted when the reply has no way to the client any more although the client is not gone; absent: the two are one. */
  cut?: AbortSignal | undefined;
  /** Monotonic milliseconds at which a stream that resumes the cut one was last open: now while there is one; never where there was none. */
  resumedAt?: (() => number) | undefined;
  /** Names the program that the client is, however often it connects. Absent: it is not known. */
  clientId?: string | undefined;
  /** The caller's own name for this call (`_meta.idempotencyKey`): for ten minutes, the same name means the same call. */
  idempotencyKey?: string;
}

/** Where a call stands in traces of its caller's, in the words of W3C Trace Context; made sure of its form. */
export interface CallerTrace {
  /** `00-TRACE-SPAN-FLAGS`: the span that the call is a part of. */
  parent: string;
  /** What tracing systems keep beside it, at most 512 characters; absent: nothing. */
  state?: string;
  /** The span of the request that brought it, in the same form, where the call itself names another one as its parent. */
  link?: string;
}

/** A call of a tool as a transport hands it over. */
export interface ToolRequest {
  name: string;
  arguments: Record<string, unknown>;
  principal: Principal;
  /** Given when the client asked for progress. */
  onProgress?: (update: ProgressUpdate) => void;
  /** Given when the caller shows the answer as it arrives. What was passed on is not taken back: the call is then not retried. */
  onText?: (delta: string) => void;
  /** Given by a transport that tells which replies arrived (`ToolReply.delivered`). */
  session?: CallSession;
  /** Called once the call's thread is known and nobody else works on it, before anything is stored; `text`: what it is about, where its arguments do not say. */
  onThread?: (thread: { id: ThreadId; seq: number; text?: string }) => void;
  /**
   * What becomes of a call that takes long; absent: the caller waits for as long as it takes. `job`: past the client's
   * patience it goes on by itself, and the reply is how to come back for it. `task`: the same, almost at once.
   */
  detach?: 'job' | 'task';
  /** Absent: the caller told of none. */
  trace?: CallerTrace;
  /** Counts against RATE_LIMITS: the calls of clients, not those of the operator's own command line. */
  rateLimited?: boolean;
  /** The transport pages a long reply, or, as the command line, shows all of it: it is not cut. */
  paged?: boolean;
  /** Given when the caller can be asked while the work goes on. Rejects when the work is ended before there is an answer. */
  ask?: (question: UserQuestion) => Promise<UserAnswer>;
  /**
   * Given when the caller can be asked before the work begins, by a reply with `questions`: his answers to those of the
   * reply before, by their keys, as he sent them, asked or not; empty at first. Earlier ones are gone: one reply asks for all.
   */
  answers?: ReadonlyMap<string, UserAnswer>;
}

/** A page counts from 1. */
export interface KeptReply {
  job: string;
  page: number;
}

/** The answer to a call: one JSON document, always, and the text that shows it. */
export interface ToolReply extends JobReply {
  /** What the caller reads: the document as JSON, or rendered. */
  text: string;
  /** The text is a page for people, not the document as JSON. */
  markdown?: true;
  /** What a failed call failed with, for programs in this process; its texts may hold what the document masks. */
  error?: AppError | undefined;
  /** The job that has this reply, and the page of it that was asked for; absent: it is not known to be kept. */
  kept?: KeptReply;
  /** The document once more, where callers were promised structured content. */
  structured?: JsonObject;
  /** The call goes on as this job, and this reply only says so. */
  job?: Job;
  /** To be called when the caller has the reply, as far as his transport can tell: the same call is a new one from then on. */
  delivered?: () => void;
  /** Nothing was done yet: the call is to come again with answers to these. Only where the request had `answers`. */
  questions?: readonly UserQuestion[];
}

/** What `tools/list` says of a tool. */
export interface ToolListing {
  name: string;
  title: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonObject & { type: 'object' };
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint?: boolean; openWorldHint: boolean };
  /** Given when the work can only be had as a task; clients that know none are refused. */
  execution?: { taskSupport: 'required' };
}

/** A command that a person gives by name, and that becomes the text of a message. */
export interface PromptListing extends Pick<ToolListing, 'name' | 'title' | 'description'> {
  arguments: { name: string; description: string; required: boolean }[];
}

/** Something that can be read by its address. */
export interface ResourceListing extends Pick<ToolListing, 'name' | 'title' | 'description'> {
  uri: string;
  mimeType: string;
}

/** Addresses of one form; `{name}` stands for a part that is filled in. */
export type ResourceTemplate = Omit<ResourceListing, 'uri'> & { uriTemplate: string };

/** Commands of the tools that are offered. */
export interface HostPrompts {
  /** In a fixed order. */
  list(): readonly PromptListing[];
  /** The message; undefined when nothing has that name. Takes the tools' own names and `name:model` too. */
  text(name: string, args: Readonly<Record<string, string>>): string | undefined;
}

/** Threads, jobs and models as things to read. Nobody sees what is another owner's. */
export interface HostResources {
  templates(): readonly ResourceTemplate[];
  list(principal: Principal): Promise<ResourceListing[]>;
  /** Undefined when there is nothing at that address. */
  read(uri: string, principal: Principal): Promise<{ mimeType: string; text: string } | undefined>;
  /**
   * Calls `listener` with the address of each thread or job of this owner that changes, by whichever process, until `signal`
   * is aborted. Resolves once nothing is missed any more; never rejects.
   */
  watch(owner: string, listener: (uri: string) => void, signal: AbortSignal): Promise<void>;
}

/** Calls that go on without their callers. The methods throw an `AppError` when there is no such job of this owner. */
export interface HostJobs {
  find(id: string, owner: string): Promise<Job>;
  cancel(id: string, owner: string): Promise<Job>;
  /** What a job of this process is at. */
  stage(job: Job): string | undefined;
  /** What a job of this process waits to be told. */
  questions(job: Job): readonly UserQuestion[];
  /** An answer to what was not asked, or was answered before, changes nothing. */
  answer(job: Job, key: string, answer: UserAnswer): void;
  /** A job's reply as the call itself would have given it. */
  show(reply: JobReply): ToolReply;
  /** Keeps the reply of a call of this tool as a job that is done, and resolves with its id; undefined where the store failed. */
  keep(tool: string, reply: JobReply, owner: string): Promise<string | undefined>;
}

/** All that a transport knows of the product. */
export interface ToolHost {
  /** In a fixed order, the same for the life of the process. */
  list(): readonly ToolListing[];
  /** Maximum tokens of one reply; absent: no limit but the client's. */
  replyTokens?(): number | undefined;
  /** Never throws: failures are replies. Aborting the signal ends the work, down to the vendor's socket. */
  call(request: ToolRequest, signal: AbortSignal): Promise<ToolReply>;
  prompts: HostPrompts;
  resources: HostResources;
  jobs: HostJobs;
  /** What `typed` may become, the likeliest first: names of models, or ids of threads. */
  complete(argument: string, typed: string, principal: Principal): Promise<string[]>;
}
