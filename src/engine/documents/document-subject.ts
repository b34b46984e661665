import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { Resumed } from '../../calls/call-record.ts';
import type { DocumentQuestion } from '../../calls/tool.ts';
import { isSkip } from '../../files/skip.ts';
import { isLongContext } from '../../models/extras/kimi/long-context.ts';
import { parsePathReference } from '../../workspace/paths.ts';
import { locateReference } from '../../workspace/read-file.ts';

export interface DocumentSubject {
  files: string[];
  fileIds: string[];
  /** Shown to a model that sees, for want of one that reads them as documents. */
  images: string[];
  /** Absent: any model will do. */
  provider?: string;
}

const pictures = /\.(png|jpe?g|gif|webp)$/i;
/** Bytes of text that make a token, about. */
const bytesPerToken = 4;

/**
 * Whether documents go to a vendor that reads them or stand in the prompt: documents and very long texts go to it where it is
 * configured; text is shown to any model; without it, pictures are shown to a model that sees.
 */
export async function documentSubject(
  { files, fileIds = [], provider }: DocumentQuestion,
  call: Resumed,
  options: Pick<ComposeOptions, 'documents' | 'sandbox' | 'home'>,
): Promise<DocumentSubject> {
  const { documents } = options;
  const subject = { files: [...files], fileIds: [...fileIds], images: [] };
  if (!documents || (provider !== undefined && provider !== documents.provider)) {
    const images = files.filter(path => pictures.test(path));
    return {
      ...subject,
      files: files.filter(path => !images.includes(path)),
      images,
      ...(provider !== undefined && { provider }),
    };
  }
  const wanted =
    provider !== undefined ||
    fileIds.length > 0 ||
    files.some(path => documents.reads(path)) ||
    isLongContext((await bytesOf(files, call, options)) / bytesPerToken);
  return { ...subject, ...(wanted && { provider: documents.provider }) };
}

/** Of the files that are there; the others are told when they are read. */
async function bytesOf(
  files: readonly string[],
  { request: { principal } }: Resumed,
  { sandbox, home }: Pick<ComposeOptions, 'sandbox' | 'home'>,
): Promise<number> {
  let bytes = 0;
  for (const path of files) {
    const reference = parsePathReference(path, principal.root, home);
    const located = isSkip(reference) ? reference : await locateReference(sandbox, reference);
    // A range of lines is what the caller chose to make of a long file.
    if (!isSkip(located) && located.range === undefined) bytes += located.size;
  }
  return bytes;
}
