import { filesApi } from '../documents/files-api.ts';
import type { VendorFiles } from '../documents/vendor-files.ts';
import type { VendorDoor } from '../upstream/vendor-request.ts';

const maxBytes = 100 * 1024 * 1024;
const mostFiles = 100;

/** Files of GLM: kept for its agents. No model of it reads them in a chat, and their text can't be fetched. */
export function createGlmFiles(door: VendorDoor): VendorFiles {
  return filesApi({ door, purpose: 'agent', maxBytes, mostFiles });
}
