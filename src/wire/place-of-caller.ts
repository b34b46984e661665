import { isAbsolute } from 'node:path';
import type { SharedParts } from '../app/compose-host.ts';
import { AppError, isAppError, securityError } from '../core/errors.ts';
import type { Mask } from '../core/ports.ts';
import { printablePath } from '../core/text.ts';
import type { Permissions } from '../core/tool-host.ts';
import { isSkip } from '../files/skip.ts';
import { defaultRoots } from '../workspace/roots.ts';
import { createSandbox } from '../workspace/sandbox.ts';

/** What a caller may do, and from where he does it. */
export interface CallerPlace {
  permissions: Permissions;
  /** The project that he declares, an absolute path; absent: the first one that he may read. */
  declared?: string | undefined;
  /** The directories that his client lists, as `file://` addresses. What can be none of his roots is left out; all of it: as if he declared none. */
  listed?: readonly string[] | undefined;
  /** He may declare any project of this machine, as long as the operator set no roots. */
  free: boolean;
  /** The process serves nobody else: what it may do beside reading roots, he may. */
  isAlone?: boolean;
}

/** The directories that a caller may read, as they really are, and his project. */
export interface Place {
  /** Absent: those of the process. */
  roots?: readonly string[];
  root: string;
}

/** `productRoot`: the project of the process. Rejects with an `AppError` of kind `security` where the caller may not read what he declares. */
export async function placeOfCaller(
  shared: SharedParts,
  caller: CallerPlace,
  productRoot: string,
  warn: (message: string) => void,
): Promise<Place> {
  const listed = caller.listed && (await placeOfList(shared, caller, caller.listed, warn));
  return listed ?? placeOf(shared, caller, productRoot).catch(error => refuse(shared.mask, caller, error));
}

async function placeOf(shared: SharedParts, caller: CallerPlace, productRoot: string): Promise<Place> {
  const { files, around } = shared;
  const { permissions, declared } = caller;
  const own = permissions.roots;
  const within = await ownRoots(shared, permissions);
  if (declared === undefined)
    return own ? { roots: within, root: within[0] ?? own[0] ?? productRoot } : { root: productRoot };
  if (!isAbsolute(declared)) throw noProject(declared, 'It is no absolute path.');
  if (mayBeAnywhere(shared, caller)) {
    const chosen = await defaultRoots({ explicit: [], projectRoot: declared, cwd: productRoot, home: around.homeDir });
    if (chosen.roots.length === 0) throw noProject(declared, chosen.reason);
    return { roots: [await open(chosen.roots).assertWithin(declared)], root: declared };
  }
  const sandbox = own ? open(within) : files.sandbox;
  return { roots: [await sandbox.assertWithin(declared)], root: declared };
}

/** Undefined: nothing that the client lists can be a root. */
async function placeOfList(
  shared: SharedParts,
  caller: CallerPlace,
  listed: readonly string[],
  warn: (message: string) => void,
): Promise<Place | undefined> {
  const { files, around } = shared;
  const own = caller.permissions.roots;
  const within = own ? open(await ownRoots(shared, caller.permissions)) : files.sandbox;
  const { listedRoots } = await import('../workspace/client-roots.ts');
  const { roots, refused } = await listedRoots(listed, {
    home: around.homeDir,
    isWindows: around.platform === 'win32',
    ...(!mayBeAnywhere(shared, caller) && { within }),
  });
  for (const { address, why } of refused) warn(`The client lists ${printablePath(address)} as a root: ${why}.`);
  const [root] = roots;
  if (root === undefined) return undefined;
  return !own && isSame(roots, files.sandbox.roots) ? { root } : { roots, root };
}

function mayBeAnywhere({ config }: SharedParts, { permissions, free }: CallerPlace): boolean {
  return free && !permissions.roots && !config.values.app.roots?.length;
}

/** The directories of a token that are there. */
async function ownRoots({ files }: SharedParts, { roots = [] }: Permissions): Promise<string[]> {
  const located = await Promise.all(roots.map(path => files.sandbox.locate(path)));
  return located.flatMap(found => (isSkip(found) || found.kind !== 'directory' ? [] : [found.path]));
}

function open(roots: readonly string[]) {
  return createSandbox({ roots, allowSecrets: false });
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each, at) => each === others[at]);
}

/** What a caller declares may hold anything; the refusal names it. */
async function refuse(mask: Mask, { declared = '' }: CallerPlace, error: unknown): Promise<never> {
  const { text } = await mask(declared, 'daemon');
  if (text === declared || !isAppError(error)) throw error;
  throw new AppError(error.kind, 'What you declare as your project is no folder for you.', error.details);
}

function noProject(path: string, reason: string) {
  return securityError(`${printablePath(path)} can't be your project: ${reason}`, {
    class: 'root',
    next: 'Declare the absolute path of a project that this server may read, or none.',
  });
}
