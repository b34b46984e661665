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

export interface ProgressUpdate {
  /** Grows with every update of one call. */
  progress: number;
  message: string;
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
}

/** The answer to a call: one JSON document, always, and the text that shows it. */
export interface ToolReply {
  isError: boolean;
  document: JsonObject;
  /** What the caller reads: the document as JSON, or rendered. */
  text: string;
  /** The document once more, where callers were promised structured content. */
  structured?: JsonObject;
}

/** What `tools/list` says of a tool. */
export interface ToolListing {
  name: string;
  title: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonObject & { type: 'object' };
  annotations: {
    readOnlyHint: boolean;
    destructiveHint: boolean;
    idempotentHint: boolean;
    openWorldHint: boolean;
  };
}

/** All that a transport knows of the product. */
export interface ToolHost {
  /** In a fixed order, the same for the life of the process. */
  list(): readonly ToolListing[];
  /** Never throws: failures are replies. Aborting the signal ends the work, down to the vendor's socket. */
  call(request: ToolRequest, signal: AbortSignal): Promise<ToolReply>;
}
