/** What a tool of the agent does to the world; the policy goes by it. */
export type AgentEffect = 'read' | 'write' | 'run' | 'network';

/** What `check` says of the arguments of a call. */
export type ArgsVerdict = { args: Record<string, unknown> } | { problem: string };

/** A tool as the model of a run may call it. */
export interface AgentTool {
  /** `a-z`, `A-Z`, `0-9`, `_` and `-`, at most 64 characters; unique within a run. */
  name: string;
  /** Written for the model. */
  description: string;
  /** JSON Schema of the arguments, of type `object`, such as `z.toJSONSchema` makes it. */
  inputSchema: Readonly<Record<string, unknown>>;
  /** What a call does at most; `read` needs no approval unless it asks for one. */
  effect: AgentEffect;
  /** Milliseconds that one call may take. Absent: 120,000, and the time of a command. */
  ms?: number;
  /** The arguments as `run` takes them, or what is wrong with them, as a sentence. Absent: `inputSchema` says it. */
  check?(args: Record<string, unknown>): ArgsVerdict | Promise<ArgsVerdict>;
  /** What a person is shown who has to approve a call, such as the command or the patch. Absent: the arguments. */
  show?(args: Record<string, unknown>): string;
  /**
   * What an approval of a call covers, and what the approver has to know; asked before the gate. Absent: `everyCall`. What it throws is
   * why this very call cannot be made, even with an approval.
   */
  approval?(args: Record<string, unknown>, around: ToolSurroundings): Promise<Approval>;
  /** Answers the text that the model reads. What it throws is told to the model as a failure. */
  run(args: Record<string, unknown>, around: ToolSurroundings): string | ToolOutput | Promise<string | ToolOutput>;
}

/** What an approval of one call covers, and what is to be known before it is given. */
export interface Approval {
  /** Calls with the same key are covered by one approval. Absent: this call alone is. */
  key?: string;
  /** What has this key, in words; shown where the call is to be approved. */
  covers?: string;
  /** Why it is asked about even where everything is approved. Absent: it is not. */
  asked?: string;
  /** What the model can do where it is asked about and nobody approves it. */
  instead?: string;
  /** Names what the call would be made on, such as the files as they are: another one, and it is not what was approved. */
  basis?: string;
  /** What is shown with the call besides its arguments. */
  notes?: readonly string[];
  /** The arguments as they are best judged, such as a diff of the file that is there. Absent: as the tool shows them. */
  shown?: string | undefined;
}

export function everyCall(name: string): Approval {
  return { key: name, covers: `every call of ${name}, whatever its arguments` };
}

/** What a call brought: the `text` is what the model reads. */
export interface ToolOutput {
  text: string;
  /** The model is told that it failed: a command with an exit code other than 0. */
  failed?: boolean;
  /** Absolute paths of files whose text the model has now seen: they are watched for changes for the rest of the run. */
  seen?: readonly string[];
}

/** Which call a tool works for, and when it has to end. */
export interface ToolSurroundings {
  callId: string;
  /** Aborted when the run ends or the call's time is over. */
  signal: AbortSignal;
}
