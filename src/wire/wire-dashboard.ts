import type { AppConfig } from '../app/settings.ts';
import { exposurePolicy } from '../config/derived-settings.ts';
import { inputError } from '../core/errors.ts';
import { isThreadId } from '../core/ids.ts';
import type { Clock, WatchedCalls } from '../core/ports.ts';
import { endsExchange, type Thread } from '../core/thread.ts';
import { narrow } from '../engine/offer/narrow.ts';
import { splitFences } from '../memory/transfer/readable/fences.ts';
import type { Team } from '../models/call/models.ts';
import type { Caller } from '../server/access/caller.ts';
import type { DashboardData, FileView, OwnData, ProviderView, ThreadsData } from '../server/dashboard/data.ts';
import type { Threads } from '../threads/threads.ts';
import { shownFile } from '../threads/transfer/readable.ts';
import type { Transfer } from '../threads/transfer/transfer.ts';
import { tools } from '../tools/index.gen.ts';

/** What of the product the dashboard shows. */
export interface DashboardSources {
  config: AppConfig;
  threads: Threads;
  transfer: Transfer;
  team: Pick<Team, 'capabilities' | 'health' | 'caches' | 'forget'>;
  calls: WatchedCalls;
  clock: Clock;
  version: string;
}

/** Browsers show these, and nothing in them runs. */
const shownImages = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** Running parts → what one caller may see of them. */
export function wireDashboard(sources: DashboardSources): DashboardData {
  const { calls, threads, team, version } = sources;
  return {
    version,
    stretches: splitFences,
    of(caller) {
      const { owner } = caller;
      const own: OwnData = {
        calls: {
          list: () => calls.list(owner),
          find: reqId => calls.find(owner, reqId),
          subscribe: (listener, signal) => calls.subscribe(owner, listener, signal),
        },
        providers: () => providersOf(team),
        caches: () => cachesOf(sources, owner),
        spend: from => threads.store.spend.rows({ owner, from }),
      };
      return mayUseThreads(sources, caller) ? { ...own, threads: threadsOf(sources, caller) } : own;
    },
  };
}

/** What a token is denied as a tool it is denied as a page. Reading stays where only writing is not allowed. */
function mayUseThreads({ config }: DashboardSources, { permissions }: Caller): boolean {
  const policy = { ...exposurePolicy(config.values.app), readOnly: false };
  const offer = narrow(tools, policy, { ...permissions, readOnly: false });
  return [...offer.tools, ...offer.unlisted].some(({ name }) => name === 'threads');
}

function threadsOf(sources: DashboardSources, { owner, permissions }: Caller): ThreadsData {
  const { threads, transfer, clock, config, team } = sources;
  const { store } = threads;
  // Threads are named by their ids alone here: no project is looked in.
  const place = { owner, workspace: '' };
  const blob: Parameters<typeof shownFile>[1] = async hash => (await store.blobs([hash])).get(hash);
  const isReadOnly = permissions.readOnly || exposurePolicy(config.values.app).readOnly;
  return {
    list: query => store.list({ ...query, owner, now: clock.now() }),
    search: query => store.search({ ...query, owner, now: clock.now() }),
    read: id => threads.find(id, place),
    async file(thread, seq, index): Promise<FileView | undefined> {
      const file = turnOf(thread, seq)?.files[index];
      return file && shownFile(file, blob);
    },
    async image(thread, seq, index) {
      const image = turnOf(thread, seq)?.images[index];
      const data = image && shownImages.has(image.mediaType) ? await blob(image.blob) : undefined;
      return image && data !== undefined
        ? { mediaType: image.mediaType, bytes: Buffer.from(data, 'base64') }
        : undefined;
    },
    export: async (id, form) => (await transfer.export(id, place, form)).pieces,
    ...(!isReadOnly && {
      change: {
        async fork(thread, seq) {
          const turn = turnOf(thread, seq);
          if (!turn || !endsExchange(thread, turn)) throw noEnd(seq);
          return threads.fork(thread, seq, `${thread.title} (fork at turn ${seq})`);
        },
        async remove({ id }, signal) {
          await threads.exclusively(id, { signal }, () => store.remove(id, clock.now()));
          // It is removed; what a vendor still keeps of it ends by itself within the hour.
          await team.forget(id).catch(() => undefined);
        },
      },
    }),
  };
}

function turnOf({ turns }: Thread, seq: number): Thread['turns'][number] | undefined {
  return turns.find(turn => turn.seq === seq);
}

function noEnd(seq: number): Error {
  return inputError(`No exchange ends with turn ${seq}: a fork keeps whole ones.`, {
    class: 'fork',
    next: 'Go back and choose an answer that is there.',
  });
}

async function providersOf(team: DashboardSources['team']): Promise<ProviderView[]> {
  const [providers, health] = await Promise.all([team.capabilities(), team.health()]);
  return providers.map(provider => ({ ...provider, health: health.filter(each => each.provider === provider.id) }));
}

/** Those of the owner's threads alone. */
async function cachesOf({ team, threads, clock }: DashboardSources, owner: string): ReturnType<OwnData['caches']> {
  const found = await team.caches();
  const own = found.map(async ({ thread }) => {
    const head = isThreadId(thread) ? await threads.store.head(thread, clock.now()) : undefined;
    return head?.state === 'live' && head.value.owner === owner;
  });
  const isOwn = await Promise.all(own);
  return found.filter((_, index) => isOwn[index]);
}
