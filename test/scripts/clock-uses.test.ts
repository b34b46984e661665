import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const source = join(import.meta.dirname, '../../src');

/** The files that ask for the time of day, and what for. Durations take `monotonic()`, what is shared through the store `storeTime()`. */
const allowed: Record<string, string[]> = {
  'shown, logged or told': [
    'app/compose-daemon.ts',
    'app/compose-models.ts',
    'calls/actions/actions.ts',
    'calls/ask/prepare-context.ts',
    'calls/ask/prompt.ts',
    'cli/commands/init.ts',
    'cli/commands/status.ts',
    'cli/commands/usage.ts',
    'app/compose-product.ts',
    'models/call/call.ts',
    'models/call/call-context.ts',
    'models/vendor-services.ts',
    'models/catalogue/models-dev.ts',
    'models/resilience/breaker-registry.ts',
    'models/resilience/shared-breakers.ts',
    'observability/event-bus.ts',
    'observability/exchange-log.ts',
    'observability/file-logs.ts',
    'providers/shared/document-library.ts',
    'server/daemon/daemon.ts',
    'server/dashboard/dashboard.ts',
    'server/websocket/frame-call.ts',
    'server/websocket/frame-server.ts',
    'storage/sqlite/client.ts',
    'storage/sqlite/sqlite.ts',
  ],
  'days of the calendar': ['models/catalogue/model-sources.ts', 'models/paid-services.ts', 'models/spend-meter.ts'],
  'compared with times of files': [
    'calls/durable/idempotent-calls.ts',
    'engine/modes/agent/local-tools/command-tool.ts',
    'server/daemon/health-file.ts',
    'server/proxy/proxy.ts',
    'workspace/git/inside-roots.ts',
    'workspace/search-index/search-index.ts',
  ],
  'given to the store, which translates it': [
    'calls/ask/ask.ts',
    'calls/durable/jobs.ts',
    'engine/host.ts',
    'threads/threads.ts',
    'threads/transfer/import-jsonl.ts',
    'threads/transfer/transfer.ts',
  ],
  'a guess at what a vendor still has in its cache': ['calls/ask/route-call.ts'],
  'the time of the store is made of it': [
    'app/compose-storage.ts',
    'app/system-environment.ts',
    'storage/shared-state.ts',
  ],
};

it('the time of day is asked for by named files only', () => {
  const files = globSync('**/*.ts', { cwd: source });
  expect(files.length).toBeGreaterThan(400);
  const asking = files.filter(file => /\bclock\.now\b/.test(readFileSync(join(source, file), 'utf8')));
  expect(asking.sort()).toEqual(Object.values(allowed).flat().sort());
});

it('the machine is asked for its time in one place', () => {
  const direct = /\bDate\.now\b|\bnew Date\(\s*\)|\bhrtime\b|\bperformance\.now\b/;
  const asking = globSync('**/*.ts', { cwd: source }).filter(file =>
    direct.test(readFileSync(join(source, file), 'utf8')),
  );

  expect(asking.sort()).toEqual(['app/system-environment.ts']);
});
