export interface MutatedModule {
  /** Source files, relative to the root. */
  files: readonly string[];
  /** Patterns of the test files that cover them. Tests in programs of their own, and long ones, are left out: they add nothing. */
  tests: readonly string[];
}

const inFolder = (folder: string, names: string) => names.split(' ').map(name => `${folder}/${name}.ts`);

/** Tests that take long and notice no more than others of their file: many rounds of one case, or other processes. */
export const longTests = [
  'whichever bit is flipped',
  'by processes that all find it damaged',
  'lets a(n idle)? process end',
];

/** The code whose mistakes cost money, data or secrets. */
export const mutatedModules: Readonly<Record<string, MutatedModule>> = {
  retry: {
    files: inFolder('src/models/resilience', 'policy limiter'),
    tests: [
      'test/models/resilience/{call-policy,clocks,limiter,policy,retry-budget,retry}.test.ts',
      'test/models/call/{call,ends,broken-streams}.test.ts',
    ],
  },
  breaker: {
    files: inFolder('src/models/resilience', 'breaker breaker-registry shared-breakers classify-error'),
    tests: [
      'test/models/resilience/{breaker,breaker-registry,shared-breakers,errors,fault,policy,retry,call-policy,retry-budget}.test.ts',
      'test/models/call/{call,ends}.test.ts',
    ],
  },
  sandbox: {
    files: [
      ...inFolder('src/workspace', 'sandbox'),
      ...inFolder('src/engine/modes/agent/local-tools', 'command-policy command-sandbox command-tool'),
    ],
    tests: [
      'test/workspace/{sandbox,sandbox-reasons,sandbox-race,read,write-inside,collect,list-source-files,secret-files,file-address,file-name}.test.ts',
      'test/engine/modes/agent/local-tools/*.test.ts',
    ],
  },
  redaction: {
    files: [
      ...inFolder('src/observability', 'private-keys remembered-secrets secret-contexts secret-masking secret-tokens'),
      'src/calls/ask/redaction.ts',
    ],
    tests: [
      'test/observability/{canaries,redact,remembered-secrets,secret-shapes,exchange-log}.test.ts',
      'test/calls/ask/{masked-stream,redaction}.test.ts',
      'test/workspace/restore-secrets.test.ts',
      'test/security/secrets-in-fields.test.ts',
    ],
  },
  budget: {
    files: inFolder('src/models', 'budget spend-meter'),
    tests: [
      'test/models/{budget,spend-limits,spend-meter,reservations,paid-services,paid-services-broken}.test.ts',
      'test/models/routing/prices.test.ts',
      'test/storage/memory/memory-spend.test.ts',
    ],
  },
  store: {
    files: [
      ...inFolder(
        'src/storage/sqlite',
        'client failure open read-threads reader salvage schema spend sqlite tables thread-index writer writes',
      ),
      'src/storage/records.ts',
      'src/storage/memory/memory.ts',
    ],
    tests: [
      'test/storage/memory/*.test.ts',
      'test/storage/retention.test.ts',
      'test/storage/sqlite/{seen-rows,sqlite,sqlite-damage,sqlite-faults,sqlite-migration,sqlite-seen-turns}.test.ts',
      'test/storage/sqlite/{failure,sqlite-file,sqlite-lock,sqlite-spend,sqlite-writes}.test.ts',
    ],
  },
  redis: {
    files: inFolder(
      'src/storage/redis',
      'cluster-client connection facts failure jobs keys records redis script spend thread-index threads',
    ),
    tests: ['test/storage/redis/*.test.ts'],
  },
};
