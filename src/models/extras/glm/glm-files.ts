import { filesApi } from '../../../providers/shared/file-uploads.ts';
import type { VendorDoor } from '../../../providers/shared/http.ts';
import type { VendorFiles } from '../documents/vendor-files.ts';

const maxBytes = 100 * 1024 * 1024;
const mostFiles = 100;

/** Files of GLM: kept for its agents. No model of it reads them in a chat, and their text can't be fetched. */
export function createGlmFiles(door: VendorDoor): VendorFiles {
  return filesApi({ door, purpose: 'agent', maxBytes, mostFiles });
}
