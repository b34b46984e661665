import type { ComposeOptions } from '../../../calls/ask/options.ts';
import type { Answered, AskPlan, Plan, Resumed } from '../../../calls/call-record.ts';
import type { DiagnoseShape } from '../../../calls/tool.ts';
import { inputError } from '../../../core/errors.ts';
import { cutMiddle } from '../../../core/text.ts';
import { applyDiagnosis, type DiagnoseSettings } from '../../diagnose/apply-diagnosis.ts';
import { checkEvidence } from '../../diagnose/check-evidence.ts';
import { checkShownPatch } from '../../diagnose/check-shown-patch.ts';
import { readFrames } from '../../diagnose/read-frames.ts';
import { diagnosisDocument, diagnosisForm, noPatchForm, patchForm, readDiagnosis } from './diagnosis.ts';
import { findFrames, referencesOf } from './stack-frames.ts';

export type { DiagnoseSettings };

/** More of one message says nothing new: its beginning and its end are what matters. */
const mostChars = 60_000;

/** An error message, with the files it speaks of, becomes a diagnosis; or the patch of the last one is applied. */
export async function planDiagnosis(
  shape: DiagnoseShape,
  call: Resumed,
  options: ComposeOptions,
  settings: DiagnoseSettings,
): Promise<Plan> {
  const { stderr, command, absolute_file_paths: named, patch, apply } = call.args;
  if (apply === true) return applyDiagnosis(call, options, settings);
  if (typeof stderr !== 'string' || stderr.trim() === '') throw nothingToRead();
  const { root } = call.request.principal;
  const { sandbox, home, maxFileBytes } = options;
  const place = { sandbox, home, root, maxFileBytes, signal: call.signal };
  call.progress.stage('finding the files that the error speaks of');
  const found = await findFrames(place, readFrames(stderr));
  const own = Array.isArray(named) ? named.map(String) : [];
  const wanted = patch !== false;
  return {
    kind: 'ask',
    contribution: questionOf(stderr, typeof command === 'string' ? command : undefined),
    tail: [shape.role, diagnosisForm, wanted ? patchForm : noPatchForm].join('\n\n'),
    files: [...new Set([...own, ...(await referencesOf(place, found))])],
    category: shape.category,
    effort: shape.effort,
    local: {},
    ...concluding(options, settings, wanted),
  };
}

function questionOf(stderr: string, command: string | undefined): string {
  const what = command === undefined ? 'This failed:' : `This failed: ${command}`;
  return `${what}\n\n=== ERROR OUTPUT ===\n${cutMiddle(stderr.trimEnd(), mostChars)}\n=== END OF ERROR OUTPUT ===`;
}

/** What is made of the answer. One that is no diagnosis is handed on as it is. */
function concluding(
  options: ComposeOptions,
  settings: DiagnoseSettings,
  wanted: boolean,
): Pick<AskPlan, 'deliver' | 'conclude'> {
  let status = 'continuation_available';
  return {
    async deliver(answered: Answered) {
      const { answer, said, request, signal } = answered;
      const diagnosis = readDiagnosis(answer.text);
      if (!diagnosis) return { text: answer.text, document: {} };
      const { root } = request.principal;
      const { sandbox, maxFileBytes } = options;
      const evidence = await checkEvidence({ sandbox, maxFileBytes, root, signal }, diagnosis.evidence);
      const proposed = wanted ? readDiagnosis(said)?.patch : undefined;
      status = diagnosis.canTell ? (answer.partial ? 'partial' : 'diagnosed') : 'cannot_tell';
      const document = diagnosisDocument(diagnosis, evidence);
      if (proposed === undefined) return { text: '', document };
      return { text: '', document: { ...document, ...(await checkShownPatch(options, settings, answered, proposed)) } };
    },
    conclude: ({ answer }) => ({ status, content: answer.text === '' ? undefined : answer.text }),
  };
}

function nothingToRead(): Error {
  return inputError('diagnose needs the error output in "stderr".', {
    code: 'MISSING_PARAMETER',
    next: 'Send what the failing command wrote, whole; or continuation_id and "apply": true to apply the patch of an earlier diagnosis.',
    validationErrors: [{ field: 'stderr', error: 'missing' }],
  });
}
