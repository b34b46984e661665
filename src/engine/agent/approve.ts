import type { JsonObject } from '../../core/json.ts';
import type { UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { shownToApprove } from '../answer/shown-to-approve.ts';
import type { AgentInput, PendingCall } from '../modes/agent/agent.ts';

/** What is done without asking anybody: nothing, what only reads within the roots, or everything. */
export type ApprovalPolicy = 'never' | 'reads' | 'all';

export interface ApprovalParts {
  policy: ApprovalPolicy;
  /** Asks whoever the run works for; undefined as an answer: nobody can be asked. */
  ask(question: UserQuestion): Promise<UserAnswer | undefined>;
  /** Tells questions of runs apart. */
  runId: string;
}

const words = { once: 'allow', always: 'allow all of this kind in this run', no: 'refuse' } as const;
const schema: JsonObject = {
  type: 'object',
  properties: {
    decision: { type: 'string', title: 'Decision', enum: Object.values(words), default: words.no },
  },
  required: ['decision'],
};

/** The gate of a run: what the policy does not allow is asked, one call at a time; what nobody allows is refused. */
export function createApprovals({ policy, ask, runId }: ApprovalParts): NonNullable<AgentInput['onToolCall']> {
  const allowed = new Set<string>();
  let before: Promise<unknown> = Promise.resolve();

  async function asked(call: PendingCall, number: number) {
    if (allowed.has(call.name)) return { action: 'allow' as const };
    const answer = await ask({ key: `${runId}:${number}`, message: messageOf(call), schema });
    if (!answer) return deny(`${call.name} needs approval, and nobody can be asked here; ${advice}`);
    const decision = answer.action === 'accept' ? answer.content.decision : words.no;
    if (decision === words.always) allowed.add(call.name);
    if (decision === words.once || decision === words.always) return { action: 'allow' as const };
    return deny('the user did not approve it. Do not try the same again; go on without, or conclude.');
  }

  let count = 0;
  return call => {
    const { effect } = call.tool;
    if (policy === 'all' || (policy === 'reads' && effect === 'read')) return { action: 'allow' };
    const number = ++count;
    // A person answers one question after the other.
    const verdict = before.then(() => asked(call, number));
    before = verdict.catch(() => undefined);
    return verdict;
  };
}

const advice =
  'the operator can allow it with AGENT_APPROVE=all, or a host that shows forms (MCP elicitation). Go on without, or conclude.';

function deny(reason: string) {
  return { action: 'deny' as const, reason };
}

const acts = { read: 'read', write: 'change files', run: 'run a program', network: 'reach the network' } as const;

/** Control characters could hide on a terminal what is about to happen. */
function messageOf({ name, args, tool }: PendingCall): string {
  const shown = tool.show?.(args) ?? JSON.stringify(args, undefined, 2);
  const clean = shown.replace(/[^\P{C}\n\t]/gu, '�');
  const what = `The agent wants to ${acts[tool.effect]} (${name})`;
  return `${what}:\n\n${shownToApprove(clean)}`;
}
