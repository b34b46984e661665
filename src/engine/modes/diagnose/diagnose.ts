import { isAbsolute, join, resolve } from 'node:path';
import { askModelTurn, type Finish, recordLocalTurn } from '../../../calls/ask/ask.ts';
import { onThread } from '../../../calls/ask/with-thread.ts';
import type { AnsweredCall, ThreadedCall } from '../../../calls/call-record.ts';
import { replyMargin, shownToApprove } from '../../../calls/format-reply.ts';
import { objectIn, type Reply, successReply } from '../../../calls/reply.ts';
import type { DiagnoseMode } from '../../../calls/tool.ts';
import { type ErrorCode, inputError, isAppError, missingError, securityError } from '../../../core/errors.ts';
import type { LineRange, Skip, TextFile } from '../../../core/file.ts';
import { hashOf } from '../../../core/ids.ts';
import { type JsonObject, recordsIn, textIn, textsIn } from '../../../core/json.ts';
import { cutMiddle, linesBetween } from '../../../core/text.ts';
import type { Thread } from '../../../core/thread.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import type { UserAnswer, UserQuestion } from '../../../core/tool-host.ts';
import { scopesOf } from '../../../threads/threads.ts';
import type { SoundPatch } from '../../../workspace/git/check-patch.ts';
import { maskPatch } from '../../../workspace/git/diff.ts';
import { isSkip, slashedFrom } from '../../../workspace/paths.ts';
import type { MaskContext } from '../../../workspace/restore-secrets.ts';
import type { Mode, ModeServices } from '../mode.ts';
import { findFrames, type Place, readFrames, readProjectFile, referencesOf } from './stack-frames.ts';

/** Applies the patch of the thread's last diagnosis, once the user said yes to it. */
async function applyDiagnosis(call: ThreadedCall, services: ModeServices): Promise<Reply> {
  const { git, backups } = services.diagnose;
  const { thread, signal, reqId, tool } = call;
  const { root } = call.request.principal;
  const proposed = lastPatch(call);
  if (proposed === undefined)
    throw inputError('There is no patch to apply: the last diagnosis of this thread has none.', {
      next: 'Send the error output in "stderr" first, then continuation_id of that reply with "apply": true.',
      validationErrors: [{ field: 'apply', error: 'no patch in this thread' }],
    });
  const tell = (paths: readonly string[], code?: ErrorCode) => {
    for (const path of paths)
      services.emit({ type: 'files.written', reqId, tool: tool.name, path, ...(code && { code }) });
  };
  let paths = pathsIn(proposed, root);
  try {
    if (backups === undefined)
      throw securityError(
        'Nothing is written to disk here, so there is no backup, and no patch is applied without one.',
        { class: 'approval', next: 'Apply the patch with "git apply", or start Polylogue without --private.' },
      );
    const request = { patch: proposed, root, signal, secrets: await maskedAs(services, thread) };
    const checked = await git.checkPatch(request);
    if (!checked.ok)
      throw inputError(`The patch does not apply any more: ${checked.reason}.`, {
        class: 'conflict',
        next: 'Send the error output again with the same continuation_id for a new one.',
      });
    paths = checked.files.map(({ path }) => join(checked.place.top, path));
    const shown = await maskPatch(checked.patch, services.mask, thread.id);
    call.progress.stage('waiting for approval');
    const question = questionOf(shown.patch, notesOf(checked));
    const answer = await answerTo(call, question);
    if (answer === 'later') return waiting(question);
    if (answer.action !== 'accept' || answer.content.approve !== true)
      throw securityError('The user did not approve the patch; nothing was changed.', {
        class: 'approval',
        next: 'Ask him what to do instead.',
      });
    const backup = join(backups, reqId);
    const files = await git.applyPatch({ ...request, backup });
    tell(files);
    return recordLocalTurn(services, call, {
      contribution: `The patch was applied to ${files.join(', ')}.`,
      document: {
        status: 'applied',
        files,
        backup,
        next_steps: `Run what failed once more. "git apply -R ${join(backup, 'applied.patch')}" takes it back.`,
      },
    });
  } catch (error) {
    // What was not changed is as much worth knowing afterwards, and why.
    tell(paths, isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR');
    throw error;
  }
}

const maxNamed = 100;

/** The files that a patch names, of whatever form it is: where it can't be applied, nothing better is known. */
function pathsIn(patch: string, root: string): string[] {
  const named = [...patch.matchAll(/^(?:---|\+\+\+) (?:[ab]\/)?([^\t\r\n]{1,1000})/gm)].map(([, name = '']) => name);
  return [...new Set(named.filter(name => name !== '/dev/null'))].slice(0, maxNamed).map(name => resolve(root, name));
}

function lastPatch({ thread, tool }: ThreadedCall): string | undefined {
  const last = thread.turns.findLast(
    ({ role, toolName, status }) => role === 'assistant' && toolName === tool.name && status === 'done',
  );
  return last && readDiagnosis(last.content)?.patch;
}

/** What the files of a thread were masked under. */
const maskedAs = async ({ store, mask }: ModeServices, thread: Thread): Promise<MaskContext> => {
  return { mask, scopes: await scopesOf(store, thread) };
};

/** What the user has to know besides the patch. */
function notesOf({ files }: SoundPatch): string[] {
  const guarded = files.filter(({ protection }) => protection !== undefined);
  const secrets = files.flatMap(({ path, secrets: own }) => own.map(({ kind, line }) => `${path}:${line} (${kind})`));
  return [
    ...guarded.map(
      ({ path, protection }) =>
        `${path} makes other programs run or obey something without being started for it (${protection}).`,
    ),
    ...(secrets.length > 0 ? [`Secrets are written back where they stood, in ${secrets.join(', ')}.`] : []),
  ];
}

/** Its key is the patch's own: what was approved is this patch and no other. */
const questionOf = (patch: string, notes: readonly string[]): UserQuestion => ({
  key: `apply_patch:${hashOf([patch, ...notes].join('\n')).slice(0, 16)}`,
  message: `Apply this patch?${notes.map(note => `\n!! ${note}`).join('')}\n\n${shownToApprove(patch)}`,
  schema: {
    type: 'object',
    properties: { approve: { type: 'boolean', title: 'Apply it', default: false } },
    required: ['approve'],
  },
});

/** `later`: the call comes again with the answer. */
async function answerTo({ request }: ThreadedCall, question: UserQuestion): Promise<UserAnswer | 'later'> {
  if (request.ask) return request.ask(question);
  if (!request.answers)
    throw securityError('A patch is applied only when the user approves, and this client can ask nobody.', {
      class: 'approval',
      next: 'Show the patch to the user and apply it with your own tools, or have him run "polylogue diagnose --continue ID --apply".',
    });
  return request.answers.get(question.key) ?? 'later';
}

function waiting(question: UserQuestion): Reply {
  const next = 'The user has to decide this, in the form that the host shows; nothing was changed yet.';
  const reply = successReply({ status: 'approval_required', question: question.message, next });
  return { ...reply, questions: [question] };
}

/** Of a reply; the rest says what it is about. */
const patchShare = 0.6;

/** The keys of a reply about a patch that a model proposed: the patch in its sound form, or why it is not shown. */
async function checkShownPatch(services: ModeServices, call: ThreadedCall, proposed: string): Promise<JsonObject> {
  const { thread, signal, request } = call;
  const { git, backups } = services.diagnose;
  try {
    const secrets = await maskedAs(services, thread);
    const checked = await git.checkPatch({ patch: proposed, root: request.principal.root, secrets, signal });
    if (!checked.ok) return { patch_withheld: sentence(checked.reason) };
    const shown = await maskPatch(checked.patch, services.mask, thread.id);
    const masked = shown.patch !== checked.patch;
    const fits = estimateTokens(shown.patch, replyMargin) <= services.replyTokens * patchShare;
    return {
      patch: {
        diff: fits ? shown.patch : undefined,
        files: checked.files.map(({ path, added, removed, isNew }) => {
          return { path, added, removed, new: isNew || undefined };
        }),
        verified: `git apply --check in ${checked.place.top}`,
        ...(masked && { note: 'Secrets in it are masked: it can be applied by "apply" alone.' }),
        ...(!fits && { note: 'It is too long for a reply: "apply" shows it to the user before anything is changed.' }),
      },
      next_steps:
        backups === undefined
          ? 'Show the patch to the user; with "git apply" it is applied.'
          : 'Show the patch to the user. Send diagnose with this continuation_id and "apply": true to have it applied once he approves.',
    };
  } catch (error) {
    // The diagnosis was paid for and stands without the patch.
    if (!isAppError(error) || error.kind === 'cancelled') throw error;
    return { patch_withheld: sentence(error.message) };
  }
}

const sentence = (reason: string): string => `The model's patch is not shown: ${reason.replace(/\.$/, '')}.`;

/** More of one message says nothing new: its beginning and its end are what matters. */
const maxChars = 60_000;

/** An error message, with the files it names, becomes a diagnosis; or the patch of the last one is applied. */
export const diagnose: Mode<DiagnoseMode> = onThread((definition, call, services) =>
  call.args.apply === true ? applyDiagnosis(call, services) : askForDiagnosis(definition, call, services),
);

async function askForDiagnosis(definition: DiagnoseMode, call: ThreadedCall, services: ModeServices): Promise<Reply> {
  const { stderr, command, absolute_file_paths: named, patch } = call.args;
  if (typeof stderr !== 'string' || stderr.trim() === '')
    throw missingError(
      'stderr',
      'diagnose needs the error output in "stderr".',
      'Send what the failing command wrote, whole; or continuation_id and "apply": true to apply the patch of an earlier diagnosis.',
    );
  const place = placeOf(services, call);
  call.progress.stage('finding the files that the error mentions');
  const found = await findFrames(place, readFrames(stderr));
  const wanted = patch !== false;
  const turn = {
    contribution: diagnosisQuestion(stderr, typeof command === 'string' ? command : undefined),
    tail: [definition.role, diagnosisForm, wanted ? patchForm : noPatchForm].join('\n\n'),
    files: [...new Set([...textsIn(named), ...(await referencesOf(place, found))])],
    category: definition.category,
    effort: definition.effort,
    wholeOnly: true,
  };
  return askModelTurn(services, call, turn, answered => finish(services, wanted, answered));
}

function placeOf({ sandbox, home, maxFileBytes }: ModeServices, { request, signal }: ThreadedCall): Place {
  return { sandbox, home, root: request.principal.root, maxFileBytes, signal };
}

function diagnosisQuestion(stderr: string, command: string | undefined): string {
  const what = command === undefined ? 'This failed:' : `This failed: ${command}`;
  return `${what}\n\n=== ERROR OUTPUT ===\n${cutMiddle(stderr.trimEnd(), maxChars)}\n=== END OF ERROR OUTPUT ===`;
}

/** What is made of the answer. One that is no diagnosis is handed on as it is. */
async function finish(services: ModeServices, wanted: boolean, answered: AnsweredCall): Promise<Finish> {
  const { answer, said } = answered;
  const diagnosis = readDiagnosis(answer.text);
  if (!diagnosis)
    return {
      text: answer.text,
      document: content => ({ status: 'continuation_available', content: content || undefined }),
    };
  const { canTell, summary, rootCause, impact, recommendation, needs } = diagnosis;
  const document = {
    summary,
    root_cause: canTell ? rootCause : 'cannot tell from this',
    evidence: await checkEvidence(placeOf(services, answered), diagnosis.evidence),
    impact: impact || undefined,
    recommendation: recommendation || undefined,
    needs: needs.length > 0 ? needs : undefined,
  };
  const proposed = wanted ? readDiagnosis(said)?.patch : undefined;
  const patch = proposed === undefined ? {} : await checkShownPatch(services, answered, proposed);
  const status = canTell ? (answer.partial ? 'partial' : 'diagnosed') : 'cannot_tell';
  return { text: '', document: () => ({ status, ...document, ...patch }) };
}

const diagnosisForm = `Answer with one JSON object and nothing else:
{"can_tell": true or false,
 "summary": "what happened, in one or two sentences",
 "root_cause": "why, down to the statement that is wrong",
 "evidence": [{"file": "path as it stands above", "line": 12, "text": "that line, as it is there"}],
 "impact": "what else this breaks, and for whom",
 "recommendation": "what to do",
 "needs": ["only where you cannot tell: what would have to be sent"],
 "patch": "PATCH"}
Rest on what stands above: the error and the files. Where they do not say what went wrong, set can_tell to false, leave root_cause empty and say in needs what is missing; a guess is worse than that.`;

const patchForm =
  'In place of PATCH: the smallest unified diff that fixes the cause, with paths as given above, three lines of context, and each context line exactly as it is in the file. Leave the key out where you are not sure, or where the cause is not in these files.';

const noPatchForm = 'Leave the key "patch" out.';

const maxEvidence = 20;

type Diagnosis = NonNullable<ReturnType<typeof readDiagnosis>>;

/** The diagnosis in a model's answer, before anything of it was checked; undefined where it holds none. */
function readDiagnosis(text: string) {
  const object = objectIn(text);
  if (!object) return undefined;
  const summary = textIn(object.summary).trim();
  const rootCause = textIn(object.root_cause).trim();
  if (summary === '' && rootCause === '') return undefined;
  const patch = textIn(object.patch).trim();
  const canTell = object.can_tell !== false && rootCause !== '';
  return {
    canTell,
    summary,
    rootCause: canTell ? rootCause : '',
    evidence: recordsIn(object.evidence)
      .map(({ file, line, text }) => ({ file: textIn(file).trim(), line: Number(line), text: textIn(text).trim() }))
      .filter(({ file, line }) => file !== '' && Number.isInteger(line) && line > 0)
      .slice(0, maxEvidence),
    impact: textIn(object.impact).trim(),
    recommendation: textIn(object.recommendation).trim(),
    needs: listIn(object.needs),
    patch: canTell && patch !== '' && patch !== 'PATCH' ? textIn(object.patch) : undefined,
  };
}

function listIn(value: unknown): string[] {
  const items: unknown[] = Array.isArray(value) ? value : [value];
  return items.map(item => textIn(item).trim()).filter(item => item !== '');
}

/** Models count lines badly: what they quote may stand a few lines away. */
const tolerance = 3;

/** Holds evidence against the files, and corrects its lines. Not `checked`: the line is missing, or says otherwise. */
async function checkEvidence(place: Place, evidence: Diagnosis['evidence']): Promise<JsonObject[]> {
  const read = new Map<string, TextFile | Skip>();
  const checked: JsonObject[] = [];
  for (const { file, line, text } of evidence) {
    const path = isAbsolute(file) ? file : join(place.root, file);
    const found = read.get(path) ?? (await readProjectFile(place, path));
    read.set(path, found);
    const shown = isSkip(found) ? file : slashedFrom(place.root, found.path);
    const at = isSkip(found) ? undefined : lineOf(found, line, text);
    checked.push({
      file: shown.startsWith('..') ? file : shown,
      line: at ?? line,
      ...(text !== '' && { text }),
      checked: at !== undefined,
    });
  }
  return checked;
}

/** The line on which the text stands, nearest to the one that was named; undefined where it stands nowhere near. */
function lineOf({ text: whole, lines }: TextFile, line: number, quoted: string): number | undefined {
  if (line > lines) return undefined;
  const wanted = flat(quoted);
  if (wanted === '' || wanted.includes('[masked:')) return line;
  const range: LineRange = { from: Math.max(1, line - tolerance), to: Math.min(lines, line + tolerance) };
  const near = linesBetween(whole, range.from, range.to).split('\n');
  const places = near.flatMap((each, index) => {
    const here = flat(each);
    return here !== '' && (here.includes(wanted) || wanted.includes(here)) ? [range.from + index] : [];
  });
  return places.toSorted((a, b) => Math.abs(a - line) - Math.abs(b - line))[0];
}

const flat = (text: string): string => text.replace(/\s+/g, ' ').trim();
