import { posix } from 'node:path';
import { type MarkdownDocument, readDocument } from './read-document.ts';

/** A link, an anchor or a path in a document that leads nowhere. */
export interface BrokenLink {
  path: string;
  line: number;
  message: string;
}

interface Repository {
  documents: ReadonlyMap<string, MarkdownDocument>;
  /** Whether a file or folder is there, by its path from the root. */
  exists(path: string): boolean;
}

const elsewhere = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
const codePath = /^(?:src|test|scripts|bench|docs)\/[\w@./-]*$/;

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign: the link is broken, which the caller says.
    return undefined;
  }
}

function linkProblem(from: string, target: string, repository: Repository): string | undefined {
  if (elsewhere.test(target)) return undefined;
  const [beforeFragment = '', fragment] = target.split('#', 2);
  const relative = decoded(beforeFragment.split('?', 1)[0] ?? '');
  if (relative === undefined) return `"${target}" is not a valid address: write a percent sign as %25`;
  const folder = relative.startsWith('/') ? '.' : posix.dirname(from);
  const path = relative === '' ? from : posix.normalize(posix.join(folder, relative)).replace(/\/$/, '');
  if (path.startsWith('..'))
    return `"${target}" leads out of the repository: link to something in it, or give a full address`;
  if (!repository.exists(path))
    return `"${target}" leads to ${path}, which is not there: write the path relative to this document`;
  const document = repository.documents.get(path);
  const anchor = fragment === undefined ? undefined : decoded(fragment);
  if (!fragment || !document || (anchor !== undefined && document.anchors.has(anchor))) return undefined;
  const known = [...document.anchors].map(name => `#${name}`).join(' ') || 'none';
  return `"${target}": ${path} has no heading #${fragment} (it has: ${known})`;
}

function codeProblem(code: string, repository: Repository): string | undefined {
  const path = code.replace(/(?::\d+(?:-\d+)?|#[\w-]+)$/, '');
  if (!codePath.test(path) || repository.exists(posix.normalize(path).replace(/\/$/, ''))) return undefined;
  return `\`${code}\` is not there: name the file as it is called now; write what varies as <name>`;
}

/** Checks all Markdown documents (path → text): relative links, their anchors, and paths in backticks such as `src/app/app.ts`. */
export function findBrokenLinks(texts: ReadonlyMap<string, string>, exists: (path: string) => boolean): BrokenLink[] {
  const documents = new Map([...texts].map(([path, text]) => [path, readDocument(text)]));
  const repository: Repository = { documents, exists };
  const broken = [...documents].flatMap(([path, { links, codes }]) => [
    ...links.map(({ target, line }) => ({ path, line, message: linkProblem(path, target, repository) })),
    ...codes.map(({ target, line }) => ({ path, line, message: codeProblem(target, repository) })),
  ]);
  return broken.flatMap(({ message, ...place }) => (message === undefined ? [] : [{ ...place, message }]));
}
