import type { Message, Part } from '../../core/message.ts';
import type { ModelInfo } from '../../core/model.ts';
import type { ImageLimits } from '../provider.ts';

/** What nearly all vendors take; those who take less, or document more, say so. */
const usualLimits: ImageLimits = { most: 50, bytes: 20_000_000, allBytes: 30_000_000 };

/** Stands where an image was, so that what is said about it makes sense. */
const gone: Part = { type: 'text', text: '[An image that stood here is not shown any more.]' };

/** As it travels: in base64. */
const sizeOf = (data: Uint8Array) => Math.ceil(data.length / 3) * 4;

/**
 * Leaves out what the vendor would refuse the request for: images of types that it does not take, those that are too large, and
 * the oldest ones where they are too many or too much together. The thread keeps them, and another model may see them.
 */
export function fitImages(
  messages: readonly Message[],
  model: ModelInfo,
  limits: ImageLimits = usualLimits,
): { messages: readonly Message[]; warnings: string[] } {
  const left = { ...limits, tooLarge: 0, tooMany: 0 };
  const refused: string[] = [];
  const keep = (part: Part): Part => {
    if (part.type !== 'image') return part;
    const size = sizeOf(part.data);
    if (limits.types && !limits.types.includes(part.mediaType)) refused.push(part.mediaType);
    else if (size > limits.bytes) left.tooLarge++;
    else if (left.most < 1 || size > left.allBytes) {
      left.tooMany++;
      // An older one that is small must not be seen where a newer one is not.
      left.most = 0;
    } else {
      left.most--;
      left.allBytes -= size;
      return part;
    }
    return gone;
  };
  const fitted = messages
    .toReversed()
    .map(message => {
      if (!message.parts.some(({ type }) => type === 'image')) return message;
      return { ...message, parts: message.parts.toReversed().map(keep).toReversed() };
    })
    .toReversed();
  return { messages: fitted, warnings: warningsOf(model, limits, { ...left, refused }) };
}

function warningsOf(
  { provider, id }: ModelInfo,
  { most, bytes, types = [] }: ImageLimits,
  { tooLarge, tooMany, refused }: { tooLarge: number; tooMany: number; refused: readonly string[] },
): string[] {
  const warnings: string[] = [];
  if (refused.length > 0) {
    const kinds = [...new Set(refused)].map(kindOf).join(', ');
    const taken = types.map(kindOf).join(', ');
    warnings.push(
      `Images left out: ${refused.length} (${kinds}). ${provider}:${id} takes ${taken} only; convert them.`,
    );
  }
  if (tooLarge > 0) {
    const megabytes = ((bytes * 3) / 4_000_000).toFixed(1);
    warnings.push(`Images left out as too large: ${tooLarge}. ${provider}:${id} takes ${megabytes} MB at the most.`);
  }
  if (tooMany > 0) {
    warnings.push(
      `Older images left out: ${tooMany}. ${provider}:${id} takes ${most} in one request, and not all sizes.`,
    );
  }
  return warnings;
}

/** `image/jpeg` is `JPEG`. */
function kindOf(mediaType: string): string {
  return mediaType.replace(/^image\//, '').toUpperCase();
}
