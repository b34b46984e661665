import { basename, join } from 'node:path';
import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Answered, AskPlan, Resumed } from '../../calls/call-record.ts';
import type { PromptShape } from '../../calls/tool.ts';
import { isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { placeholdersIn } from '../../files/put-back/originals.ts';
import { isSkip } from '../../files/skip.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { readTextFile } from '../../workspace/read-file.ts';
import { putBack } from '../../workspace/restore-secrets.ts';
import { writeInside } from '../../workspace/write-file.ts';
import {
  artifactInstructions,
  artifactName,
  generationProtocol,
  secretsNote,
  splitGeneratedCode,
} from '../answer/generated-code.ts';
import { documentSubject } from '../documents/document-subject.ts';
import { threadOriginals } from '../secrets/thread-originals.ts';
import { specialStatus } from '../special-status.ts';

type Shape = PromptShape<Record<string, unknown>>;

/** One question, one answer. */
export async function planPrompt(shape: Shape, call: Resumed, options: ComposeOptions): Promise<AskPlan> {
  const { args } = call;
  const { question, files: named } = await questionOf(shape, call, options);
  const subject = shape.documents && (await documentSubject(shape.documents(args), call, options));
  const files = subject?.files ?? named;
  const directory = typeof args[directoryField] === 'string' ? args[directoryField] : undefined;
  // Refused now rather than after a model was paid for code that has no place.
  if (directory !== undefined) await options.sandbox.assertWithin(directory);
  return {
    kind: 'ask',
    contribution: question,
    tail: shape.role,
    addendum: model => (shape.generatesCode && directory && model.allowCodeGeneration ? generationProtocol : ''),
    files,
    ...(subject && { fileIds: subject.fileIds, provider: subject.provider }),
    images: [...strings(args.images), ...(subject?.images ?? [])],
    category: shape.category,
    effort: shape.effort,
    local: {},
    deliver: answered => deliver(options, directory, answered),
    conclude({ answer, files: report, plan }) {
      const special = specialStatus(answer.text);
      const missing =
        plan.files.length + (plan.fileIds ?? []).length + (plan.images ?? []).length > 0 && report.skipped.length > 0;
      const cut = answer.partial || answer.finish.kind === 'length' || missing;
      return {
        status: special?.status ?? (cut ? 'partial' : 'continuation_available'),
        content: answer.text,
        content_type: special ? 'json' : 'text',
      };
    },
  };
}

const directoryField = 'working_directory_absolute_path';

/** A file called prompt.txt is the question: that is how callers send what is too long for a text field. */
async function questionOf(shape: Shape, { args, request, signal, thread }: Resumed, options: ComposeOptions) {
  const named = strings(args.absolute_file_paths ?? args.relevant_files);
  const carrier = named.find(path => basename(path) === 'prompt.txt');
  if (carrier === undefined) return { question: shape.question(args), files: named };
  const files = named.filter(path => path !== carrier);
  const reference = parsePathReference(carrier, request.principal.root, options.home);
  if (isSkip(reference)) return { question: shape.question(args), files: named };
  const outcome = await readTextFile(options.sandbox, reference, { maxBytes: options.maxFileBytes, signal });
  if (!outcome.ok) return { question: shape.question(args), files: named };
  return { question: (await options.mask(outcome.file.text, thread.id)).text, files };
}

/** Puts generated code where the caller asked for it; the reply then says where it is instead of carrying it. */
async function deliver(
  options: ComposeOptions,
  directory: string | undefined,
  { answer, said, reqId, tool, thread, turn, signal }: Answered,
): Promise<Delivery> {
  const generated = directory !== undefined && answer.model.allowCodeGeneration ? splitGeneratedCode(said) : undefined;
  if (!generated || directory === undefined) return { text: answer.text, document: {} };
  try {
    const wanted = placeholdersIn(generated.code);
    const originals = await threadOriginals(options, { thread, files: turn.files, signal }, wanted);
    const code = putBack(generated.code, originals);
    const { path, replaced } = await writeInside(options.sandbox, {
      directory,
      name: artifactName,
      text: code.text,
      unique: reqId,
    });
    options.emit({ type: 'files.written', reqId, tool: tool.name, path });
    // Of the text as it is stored: a model of this machine may repeat a secret that only its file tells.
    const rest = splitGeneratedCode(answer.text)?.rest ?? '';
    const text = [rest, artifactInstructions(path, replaced), secretsNote(code)]
      .filter(part => part !== '')
      .join('\n\n');
    const secrets = { secrets_put_back: code.count || undefined, secrets_left_masked: code.left.length || undefined };
    return { text, document: { generated_code: { path, replaced, characters: code.text.length, ...secrets } } };
  } catch (error) {
    // The code was paid for: it comes in the reply, with the reason why it is there.
    const reason = error instanceof Error ? error.message : String(error);
    const code = isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR';
    options.emit({ type: 'files.written', reqId, tool: tool.name, path: join(directory, artifactName), code });
    return {
      text: `${answer.text}\n\nWARNING: the code could not be written to ${directory}: ${reason}`,
      document: {},
    };
  }
}

interface Delivery {
  text: string;
  document: JsonObject;
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
