import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Embedder, Mask } from '../core/ports.ts';
import { createGit, type Git } from '../workspace/git/git.ts';
import { createSandbox, type Sandbox } from '../workspace/sandbox.ts';
import { createSearchIndexes, type SearchIndexes } from '../workspace/search-index/search-index.ts';
import { createPool, type WorkPool } from '../workspace/workers/worker-pool.ts';
import type { ProcessEnvironment } from './compose-front.ts';
import type { AppConfig } from './settings.ts';

/** What works on the user's files. */
export interface FileParts {
  sandbox: Sandbox;
  git: Git;
  pool: WorkPool;
  indexes: SearchIndexes;
  /** Where files are copied to before a patch changes them; absent where nothing is written to disk. */
  backups?: string;
}

export interface FileContext extends Pick<ProcessEnvironment, 'homeDir' | 'platform' | 'childEnv' | 'clock'> {
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
export function composeFiles({ values, home }: AppConfig, context: FileContext): FileParts {
  const { allowSecretFiles, maskSecrets } = values.app;
  const { roots, clock, mask, isPrivate, embedder, noEmbedder } = context;
  const sandbox = createSandbox({ roots, allowSecrets: allowSecretFiles, own: [home] });
  return {
    sandbox,
    ...(!isPrivate && { backups: join(home, 'backups') }),
    git: createGit({ ...context, sandbox }),
    pool: createPool({ size: Math.max(1, availableParallelism() - 1), clock }),
    indexes: createSearchIndexes({
      ...(!isPrivate && { folder: join(home, 'index') }),
      ...(embedder && { embedder }),
      ...(noEmbedder !== undefined && { noEmbedder }),
      sandbox,
      mask: maskSecrets ? mask : async text => ({ text, found: {} }),
      clock,
    }),
  };
}

/** The same for a caller who may read these folders and no others. */
export function composeFilesWithin({ values, home }: AppConfig, files: FileParts, context: CallerFiles): FileParts {
  const sandbox = createSandbox({ roots: context.roots, allowSecrets: values.app.allowSecretFiles, own: [home] });
  const { indexes } = files;
  return {
    ...files,
    sandbox,
    git: createGit({ ...context, sandbox }),
    indexes: { of: root => indexes.of(root, sandbox), close: indexes.close },
  };
}

export type CallerFiles = Pick<FileContext, 'roots' | 'homeDir' | 'platform' | 'childEnv' | 'clock' | 'mask'>;
