import type { ActionContext } from '../../calls/action-context.ts';
import type { ActionCall } from '../../calls/actions/actions.ts';
import type { CallServices } from '../../calls/ask/services.ts';
import type { ParsedCall } from '../../calls/call-record.ts';
import type { Reply } from '../../calls/reply.ts';
import type { CliRegistry } from '../../providers/external-cli/cli-registry.ts';
import type { Git } from '../../workspace/git/git.ts';

/** How tools of one kind are executed; `onThread` makes one that works on the thread of its call. */
export type Mode<Definition> = (definition: Definition, call: ParsedCall, services: ModeServices) => Promise<Reply>;

/** What the modes use: the services of a call, and what only one of them needs. */
export interface ModeServices extends CallServices {
  workflow: {
    /** Ask the expert although the caller is certain. */
    expertAtCertain: boolean;
    /** Say `calling_expert_analysis` for a finished expert call, as older callers expect. */
    compat: boolean;
    /** For workflows that read git changes. */
    git: Git;
  };
  panel: {
    /** Milliseconds for one answer, and for the call as a whole. */
    modelMs: number;
    totalMs: number;
  };
  fanout: {
    /** Models of a call that names none; empty: the default model, or one chosen automatically. */
    defaultModels: readonly string[];
    /** The one sentence that models get in addition to the text; absent: none. */
    language?: string;
    /** All providers, with the short names that may prefix a model's. */
    prefixes: readonly { id: string; names: readonly string[] }[];
  };
  diagnose: {
    git: Git;
    /** Directory to which files are copied before a patch changes them; absent: patches are never applied. */
    backups?: string;
  };
  clis: CliRegistry;
  agent: AgentRunner;
  /** What an action's handler may touch, for one caller. */
  actionContext(call: ActionCall): ActionContext;
}

/** Answers calls of tools that let a model work. */
export interface AgentRunner {
  execute(call: ParsedCall, services: CallServices): Promise<Reply>;
  /** Ends the runs that wait for approval. */
  close(): Promise<void>;
}
