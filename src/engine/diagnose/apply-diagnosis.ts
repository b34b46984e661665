import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { LocalPlan, Resumed } from '../../calls/call-record.ts';
import { type ErrorCode, inputError, isAppError, securityError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { UserAnswer, UserQuestion } from '../../core/tool-host.ts';
import { maskPatch } from '../../files/git/mask-patch.ts';
import { placeholdersIn } from '../../files/put-back/originals.ts';
import { putBackPatch } from '../../files/put-back/put-back-patch.ts';
import type { Git } from '../../workspace/git/git.ts';
import { shownToApprove } from '../answer/shown-to-approve.ts';
import { readDiagnosis } from '../modes/diagnose/diagnosis.ts';
import { threadOriginals } from '../secrets/thread-originals.ts';

/** What a diagnosis may do beside asking a model. */
export interface DiagnoseSettings {
  git: Git;
  /** Where files are copied to before a patch changes them; absent: patches are never applied. */
  backups?: string;
  /** The most tokens of one reply: half a patch is none. */
  replyTokens: number;
}

/** Could hide on a terminal what is about to happen. */
const unprintable = /[^\P{C}\n\t]/gu;

/** Applies the patch of the thread's last diagnosis, once the user said yes to it. */
export async function applyDiagnosis(
  call: Resumed,
  options: ComposeOptions,
  { git, backups }: DiagnoseSettings,
): Promise<LocalPlan> {
  const { thread, signal, reqId, tool } = call;
  const { root } = call.request.principal;
  const proposed = lastPatch(call);
  if (proposed === undefined) throw nothingToApply();
  const tell = (paths: readonly string[], code?: ErrorCode) => {
    for (const path of paths)
      options.emit({ type: 'files.written', reqId, tool: tool.name, path, ...(code && { code }) });
  };
  let paths = pathsIn(proposed, root);
  try {
    if (backups === undefined) throw noBackups();
    const originals = await threadOriginals(options, { thread, files: [], signal }, placeholdersIn(proposed));
    const { text } = putBackPatch(proposed, originals);
    const checked = await git.checkPatch({ patch: text, root, signal });
    if (!checked.ok) throw stale(checked.reason);
    paths = checked.files.map(({ path }) => join(checked.place.top, path));
    const shown = await maskPatch(checked.patch, options.mask, thread.id);
    call.progress.stage('waiting for approval');
    const question = questionOf(shown.patch);
    const answer = await answerTo(call, question);
    if (answer === 'later')
      return { kind: 'local', contribution: '', document: waiting(question), questions: [question] };
    if (answer.action !== 'accept' || answer.content.approve !== true) throw declined();
    const backup = join(backups, reqId);
    const { files } = await git.applyPatch({ patch: text, root, signal, backup });
    tell(files);
    return appliedPlan(files, backup);
  } catch (error) {
    // What was not changed is as much worth knowing afterwards, and why.
    tell(paths, isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR');
    throw error;
  }
}

function appliedPlan(files: string[], backup: string): LocalPlan {
  return {
    kind: 'local',
    contribution: `The patch was applied to ${files.join(', ')}.`,
    document: {
      status: 'applied',
      files,
      backup,
      next_steps: `Run what failed once more. "git apply -R ${join(backup, 'applied.patch')}" takes it back.`,
    },
  };
}

const mostNamed = 100;

/** The files that a patch names, of whatever form it is: where it can't be applied, nothing better is known. */
function pathsIn(patch: string, root: string): string[] {
  const named = [...patch.matchAll(/^(?:---|\+\+\+) (?:[ab]\/)?([^\t\r\n]{1,1000})/gm)].map(([, name = '']) => name);
  return [...new Set(named.filter(name => name !== '/dev/null'))].slice(0, mostNamed).map(name => resolve(root, name));
}

function lastPatch({ thread, tool }: Resumed): string | undefined {
  const last = thread.turns.findLast(
    ({ role, toolName, status }) => role === 'assistant' && toolName === tool.name && status === 'done',
  );
  return last && readDiagnosis(last.content)?.patch;
}

/** Its key is the patch's own: what was approved is this patch and no other. */
function questionOf(patch: string): UserQuestion {
  return {
    key: `apply_patch:${createHash('sha256').update(patch).digest('hex').slice(0, 16)}`,
    message: `Apply this patch?\n\n${shownToApprove(patch.replace(unprintable, '\ufffd'))}`,
    schema: {
      type: 'object',
      properties: { approve: { type: 'boolean', title: 'Apply it', default: false } },
      required: ['approve'],
    },
  };
}

/** `later`: the call comes again with the answer. */
async function answerTo({ request }: Resumed, question: UserQuestion): Promise<UserAnswer | 'later'> {
  if (request.ask) return request.ask(question);
  if (!request.answers) throw nobodyToAsk();
  return request.answers.get(question.key) ?? 'later';
}

function waiting({ message }: UserQuestion): JsonObject {
  return {
    status: 'approval_required',
    question: message,
    next: 'The user has to decide this, in the form that the host shows; nothing was changed yet.',
  };
}

function nothingToApply(): Error {
  return inputError('There is no patch to apply: the last diagnosis of this thread has none.', {
    next: 'Send the error output in "stderr" first, then continuation_id of that reply with "apply": true.',
    validationErrors: [{ field: 'apply', error: 'no patch in this thread' }],
  });
}

function stale(reason: string): Error {
  return inputError(`The patch does not apply any more: ${reason}.`, {
    class: 'conflict',
    next: 'Send the error output again with the same continuation_id for a new one.',
  });
}

function noBackups(): Error {
  return securityError('Nothing is written to disk here, so there is no backup, and no patch is applied without one.', {
    class: 'approval',
    next: 'Apply the patch with "git apply", or start Polylogue without --private.',
  });
}

function nobodyToAsk(): Error {
  return securityError('A patch is applied only when the user approves, and this client can ask nobody.', {
    class: 'approval',
    next: 'Show the patch to the user and apply it with your own tools, or have him run "polylogue diagnose --continue ID --apply".',
  });
}

function declined(): Error {
  return securityError('The user did not approve the patch; nothing was changed.', {
    class: 'approval',
    next: 'Ask him what to do instead.',
  });
}
