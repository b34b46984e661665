import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Answered } from '../../calls/call-record.ts';
import { isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { maskPatch } from '../../files/git/mask-patch.ts';
import { placeholdersIn } from '../../files/put-back/originals.ts';
import { putBackPatch } from '../../files/put-back/put-back-patch.ts';
import { replyMargin } from '../answer/cap.ts';
import { threadOriginals } from '../secrets/thread-originals.ts';
import type { DiagnoseSettings } from './apply-diagnosis.ts';

/** Of a reply; the rest says what it is about. */
const patchShare = 0.6;

/** The keys of a reply about a patch that a model proposed: the patch in its sound form, or why it is not shown. */
export async function checkShownPatch(
  options: ComposeOptions,
  { git, backups, replyTokens }: DiagnoseSettings,
  { thread, turn, signal, request }: Pick<Answered, 'thread' | 'turn' | 'signal' | 'request'>,
  proposed: string,
): Promise<JsonObject> {
  try {
    const originals = await threadOriginals(options, { thread, files: turn.files, signal }, placeholdersIn(proposed));
    const restored = putBackPatch(proposed, originals);
    const checked = await git.checkPatch({ patch: restored.text, root: request.principal.root, signal });
    if (!checked.ok) return { patch_withheld: sentence(checked.reason) };
    const shown = await maskPatch(checked.patch, options.mask, thread.id);
    const masked = shown.patch !== checked.patch;
    const fits = estimateTokens(shown.patch, replyMargin) <= replyTokens * patchShare;
    return {
      patch: {
        diff: fits ? shown.patch : undefined,
        files: checked.files.map(({ path, added, removed, isNew }) => ({
          path,
          added,
          removed,
          new: isNew || undefined,
        })),
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

function sentence(reason: string): string {
  return `The model's patch is not shown: ${reason.replace(/\.$/, '')}.`;
}
