import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Embedder, Mask } from '../core/ports.ts';
import { createGit } from '../workspace/git/git.ts';
import { createSandbox } from '../workspace/sandbox.ts';
import { createSearchIndexes } from '../workspace/search-index/search-index.ts';
import { createPool } from '../workspace/workers/worker-pool.ts';
import type { ProcessEnvironment } from './compose-front.ts';
import type { AppConfig } from './settings.ts';

/** What works on the user's files. */
export type FileParts = ReturnType<typeof composeFiles>;

export interface FileContext
  extends Pick<ProcessEnvironment, 'homeDir' | 'platform' | 'childEnv' | 'clock' | 'namedPaths'> {
  roots: readonly string[];
  mask: Mask;
  /** Nothing is written to disk. */
  isPrivate: boolean;
  /** Makes vectors for the search index; absent: words alone decide. */
  embedder: Embedder | undefined;
  /** Why there is none, where one was wanted. */
  noEmbedder: string | undefined;
}

/** Settings → what works on files. Opens nothing; threads and databases come with their first use. */
export function composeFiles({ values, home }: AppConfig, context: FileContext) {
  const { roots, clock, isPrivate, embedder, noEmbedder } = context;
  const named = context.namedPaths ?? [];
  const sandbox = createSandbox({ roots, named, allowSecrets: values.app.allowSecretFiles, own: [home] });
  const folder = isPrivate ? undefined : join(home, 'index');
  const mask = maskFor(values.app, context.mask);
  return {
    sandbox,
    /** Where files are copied to before a patch changes them; undefined where nothing is written to disk. */
    backups: isPrivate ? undefined : join(home, 'backups'),
    git: createGit({ ...context, sandbox, unmasked: !values.app.maskSecrets }),
    pool: createPool({ size: Math.max(1, availableParallelism() - 1), clock }),
    indexes: createSearchIndexes({ folder, embedder, noEmbedder, sandbox, mask, clock }),
  };
}

/** Returns the mask, or one that changes nothing if masking is switched off. */
export const maskFor = ({ maskSecrets }: AppConfig['values']['app'], mask: Mask): Mask =>
  maskSecrets ? mask : async text => ({ text, found: {} });

/** The same for a caller who may read these folders and no others. */
export function composeFilesWithin({ values, home }: AppConfig, files: FileParts, context: CallerFiles): FileParts {
  const sandbox = createSandbox({ roots: context.roots, allowSecrets: values.app.allowSecretFiles, own: [home] });
  const indexes = { of: (root: string) => files.indexes.of(root, sandbox), close: files.indexes.close };
  const git = createGit({ ...context, sandbox, unmasked: !values.app.maskSecrets });
  return { ...files, sandbox, git, indexes };
}

export type CallerFiles = Pick<FileContext, 'roots' | 'homeDir' | 'platform' | 'childEnv' | 'clock' | 'mask'>;
