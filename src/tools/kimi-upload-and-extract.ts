import { z } from 'zod';
import { defineAction, type UploadOutcome } from '../calls/tool.ts';
import type { JsonObject } from '../core/json.ts';

export const kimiUploadAndExtract = defineAction({
  name: 'kimi_upload_and_extract',
  title: 'Upload to Kimi',
  description: 'Upload documents (PDF, Office, scans, code) to Kimi and extract their text.',
  toolset: 'files',
  tier: 'manager',
  needs: ['moonshot'],
  effects: { writes: true, destroys: false, network: true, idempotent: true },
  fields: { files: z.array(z.string()).min(1) },
  accepts: {
    purpose: z.enum(['file-extract']).optional(),
    /** The text comes along; else only how long it is. */
    include_content: z.boolean().optional(),
  },
  async run({ files, include_content: whole }, { uploads }) {
    const outcomes = await uploads.add(files);
    const failed = outcomes.some(outcome => 'error' in outcome);
    return {
      status: failed ? 'partial' : 'success',
      files: await Promise.all(outcomes.map(outcome => rowOf(outcome, whole === true))),
      note: 'Send the file_ids to kimi_multi_file_chat to ask about them; the same file is not uploaded twice.',
    };
  },
});

async function rowOf(outcome: UploadOutcome, whole: boolean): Promise<JsonObject> {
  if ('error' in outcome) return { filename: outcome.filename, status: 'error', error: { ...outcome.error } };
  const { estimateTokens } = await import('../core/tokens.ts');
  const { fileId, status, filename, bytes, fresh, text } = outcome;
  const row = { file_id: fileId, status, filename, bytes, uploaded: fresh, text_tokens: estimateTokens(text) };
  return whole ? { ...row, content: text } : row;
}
