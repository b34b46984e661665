import { isRecord, parsedJson } from '../../core/json.ts';
import type { ReadingVendorFiles } from '../../models/vendor-services.ts';
import { filesApi, isFileId } from '../shared/file-uploads.ts';
import { type VendorEndpoint, vendorRequest } from '../shared/http.ts';

const maxFiles = 1_000;
const extractMs = 120_000;

/** Files of Moonshot, which reads documents of many kinds and pictures of text. */
export function createMoonshotFiles(endpoint: VendorEndpoint, maxBytes: number): ReadingVendorFiles {
  const files = filesApi({ endpoint, purpose: 'file-extract', maxBytes, maxFiles, deletesWith: 'kimi_manage_files' });
  return {
    ...files,
    async content(id, signal) {
      if (!isFileId(id)) return undefined;
      const path = `/files/${id}/content`;
      const what = 'the text of a file';
      const answer = await vendorRequest(endpoint, { path, what, timeoutMs: extractMs, signal, expects: [404] });
      return answer.status === 404 ? undefined : textOf(answer.text);
    },
  };
}

/** The vendor wraps the text into an object with the file's kind and name. */
function textOf(body: string): string {
  const parsed = parsedJson(body);
  return isRecord(parsed) && typeof parsed.content === 'string' ? parsed.content : body;
}
