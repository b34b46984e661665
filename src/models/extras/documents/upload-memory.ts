import type { JsonObject } from '../../../core/json.ts';
import type { Clock, SharedState } from '../../../core/ports.ts';
import type { VendorFile } from './vendor-files.ts';

/** What is remembered of one upload. */
export interface RememberedUpload {
  sha256: string;
  file: VendorFile;
  /** Everybody who handed this document over. */
  owners: readonly string[];
}

/** Which documents an account has at its vendor: what makes a second upload needless. Shared by all processes on one store. */
export interface UploadMemory {
  /** Also notes who asks. */
  find(sha256: string, owner: string): Promise<VendorFile | undefined>;
  keep(sha256: string, file: VendorFile, owner: string): Promise<void>;
  forget(sha256: string): Promise<void>;
  /** By file id. */
  all(): Promise<ReadonlyMap<string, RememberedUpload>>;
}

/** Ids are forgotten after this time without use; the document is then uploaded again. */
const rememberedMs = 30 * 24 * 3_600_000;

/** `prefix` names vendor and account and ends with a slash. */
export function createUploadMemory(prefix: string, state: SharedState, clock: Pick<Clock, 'now'>): UploadMemory {
  return {
    async find(sha256, owner) {
      const value = await state.change(
        prefix + sha256,
        rememberedMs,
        before => before && { ...before, owners: [...new Set([...ownersOf(before), owner])] },
      );
      return value && fileOf(value);
    },
    async keep(sha256, { id, filename, bytes }, owner) {
      const value = { file_id: id, filename, bytes, at: clock.now(), owners: [owner] };
      await state.change(prefix + sha256, rememberedMs, () => value);
    },
    async forget(sha256) {
      await state.change(prefix + sha256, rememberedMs, () => undefined);
    },
    async all() {
      const entries = [...(await state.list(prefix))].map(([key, value]): RememberedUpload => {
        return { sha256: key.slice(prefix.length), file: fileOf(value), owners: ownersOf(value) };
      });
      return new Map(entries.map(entry => [entry.file.id, entry]));
    },
  };
}

function fileOf({ file_id: id, filename, bytes, at }: JsonObject): VendorFile {
  const createdAt = Math.floor(Number(at) / 1_000);
  return { id: String(id), filename: String(filename), bytes: Number(bytes), createdAt, status: 'ok' };
}

function ownersOf({ owners }: JsonObject): string[] {
  return Array.isArray(owners) ? owners.map(String) : [];
}
