import { createJobs } from '../calls/durable/jobs.ts';
import { version } from '../core/version.ts';
import { openState } from '../storage/shared-state.ts';
import { createThreads } from '../threads/threads.ts';
import { createTransfer, openTransfer } from '../threads/transfer/transfer.ts';
import { unlimited } from './compose-catalog.ts';
import { maskFor, wireEmbedder } from './compose-engine.ts';
import type { Front, Surroundings } from './compose-front.ts';
import { createHosts } from './compose-hosts.ts';
import { composeModels, wireClis, wireServices } from './compose-models.ts';
import { wireObserved } from './compose-observability.ts';
import { openStore } from './compose-storage.ts';
import { wireFiles } from './compose-workspace.ts';
import type { Product } from './product.ts';
import type { AppConfig } from './settings.ts';

/** Configuration and what was told of it → running parts. Opens nothing: databases, connections and logs come with their first use. */
export async function composeProduct(config: AppConfig, around: Surroundings, front: Front): Promise<Product> {
  const values = config.values.app;
  const { clock, random, homeDir: home } = around;
  const { telemetry, found, root, place } = front;
  const { emit, recent, mask, tellComms } = telemetry;
  const { isPrivate } = place;
  const { providers: extraProviders, tools: extraTools } = around.extensions ?? {};
  const store = await openStore({ ...place, clock, random, emit });
  const threads = createThreads({ store, clock, random, emit, timeoutHours: values.conversationTimeoutHours });
  const state = openState(store, clock);
  const { desk: clis, programs } = wireClis(config, { ...around, root, emit });
  const team = await composeModels(config, {
    clock,
    random,
    emit,
    tellComms,
    state,
    isPrivate,
    extraProviders,
    programs,
  });
  const services = wireServices(config, { clock, state, emit, extraProviders });
  const embedder = wireEmbedder(services, { values, team, store, clock, random, emit });
  const { noEmbedder } = services;
  const files = wireFiles(config, { ...around, roots: found.roots, mask, isPrivate, embedder, noEmbedder });
  const jobs = createJobs({ store, clock, random, emit });
  const transfer = createTransfer({ threads, clock, random, emit, mask: maskFor(values, mask) });
  const facts = { version, nodeVersion: around.nodeVersion, platform: around.platform, store: place.name };
  const running = { store, state, files, mask, random, clock, emit, home, services, threads, jobs, recent, transfer };
  const placed = { ...running, clis, config, team, facts, around: { ...around, mask }, extraTools };
  const hosts = createHosts(placed, front);
  const { host, explain, ask } = hosts.own;
  const observed = wireObserved(telemetry, { ...team, ask }, random);
  return {
    host,
    root,
    readable: found,
    team,
    warned: telemetry.warned,
    explainRoute: (question, signal) => explain(question, root, signal),
    converse: hosts.own.converse,
    inspectStore: store.inspect,
    async projectOf(listed) {
      const found = await hosts.of({ permissions: unlimited, listed, free: true, isAlone: true });
      return { host: found.wired.host, root: found.root };
    },
    searchIndex: files.indexes.of,
    transfer: openTransfer({ transfer, store, clock }, { owner: 'local', workspace: root }),
    ...observed,
    spent: from => store.spend.rows({ owner: 'local', from }),
    openDaemon: async options => {
      const { composeDaemon: wireDaemon } = await import('./compose-daemon.ts');
      const seen = { threads, transfer, team, observed, calls: telemetry.calls, know: telemetry.know };
      return wireDaemon({ ...seen, config, hosts, store, version, clock, random, emit, isPrivate }, options);
    },
    async close(hurry) {
      await Promise.all([jobs.close(values.detachedGraceSeconds * 1_000, hurry), hosts.settle(hurry)]);
      await team.close();
      await hosts.flush();
      await Promise.all([files.pool.close(), files.indexes.close()]);
      await store.close();
      await telemetry.close();
    },
  };
}
