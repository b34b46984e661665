import { hashOf } from '../../calls/ask/file-embedding.ts';
import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Routed } from '../../calls/call-record.ts';
import { limitError } from '../../core/errors.ts';
import type { Skip } from '../../core/file.ts';
import type { Sha256 } from '../../core/ids.ts';
import type { ImageRecord } from '../../core/thread.ts';
import { readImage } from '../../files/images.ts';
import { isSkip } from '../../files/skip.ts';

/** Images of one call, as a turn keeps them. */
export interface CollectedImages {
  records: ImageRecord[];
  /** Bytes in base64, by hash. */
  blobs: Map<Sha256, string>;
  skipped: Skip[];
}

const mostImages = 5;
/** Vendors refuse larger ones. */
const maxImageBytes = 20 * 1024 * 1024;

/** Reads the images that the caller named. Throws LIMIT for more than vendors take in one message. */
export async function collectImages(
  options: ComposeOptions,
  { plan, request, signal }: Routed,
): Promise<CollectedImages> {
  const named = plan.images ?? [];
  if (named.length > mostImages) {
    throw limitError('files', `${named.length} images were named; one call takes at most ${mostImages}.`, {
      next: `Send at most ${mostImages} images, the others in the next call on the same thread.`,
    });
  }
  const out: CollectedImages = { records: [], blobs: new Map(), skipped: [] };
  const place = { root: request.principal.root, home: options.home, maxBytes: maxImageBytes, signal };
  for (const source of named) {
    const image = await readImage(options.sandbox, source, place);
    if (isSkip(image)) {
      out.skipped.push(image);
      continue;
    }
    const text = image.bytes.toString('base64');
    const blob = hashOf(text);
    out.blobs.set(blob, text);
    out.records.push({ source: image.source, mediaType: image.mediaType, blob });
  }
  return out;
}
