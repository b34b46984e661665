import { defineAction, type VendorCache } from '../calls/tool.ts';
import type { JsonObject } from '../core/json.ts';
import type { Health } from '../core/model.ts';
import { feeDocument, roundedUsd, type SpendRow, spendByKind, spendTotal } from '../core/usage.ts';

export const status = defineAction({
  name: 'status',
  title: 'Status',
  description: 'Show health: store, providers, spend today, running jobs, limits.',
  toolset: 'ops',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: {},
  async run(_args, { ops, product, principal, models, jobs }) {
    const [providers, spent, running, caches, health] = await Promise.all([
      ops.capabilities(),
      ops.spentToday(),
      ops.runningJobs(),
      ops.caches(),
      ops.health(),
    ]);
    const blocked = health.filter(({ why }) => why !== undefined);
    const blocks = Map.groupBy(blocked, ({ provider }) => provider);
    const configured = providers.filter(provider => provider.configured);
    const { rates, perRequest, perThread, perDay } = ops.limits;
    return {
      status: 'success',
      version: product.version,
      uptime_s: Math.round(ops.uptimeMs() / 1_000),
      store: product.store,
      project: principal.root || undefined,
      roots: [...product.roots],
      default_model: models.defaultModel,
      providers: configured.map(({ id, models: count, local }) => {
        return { id, models: count, local: local || undefined, not_asked: blocks.get(id)?.map(blockDocument) };
      }),
      spent_today: spentDocument(spent),
      running_jobs: running.map(job => {
        return { job_id: job.id, tool: job.tool, since: isoTime(job.createdAt), stage: jobs.stage(job) };
      }),
      vendor_caches: caches.length > 0 ? caches.map(cacheDocument) : undefined,
      limits: {
        ...{ max_cost_per_request: perRequest, max_cost_per_thread: perThread, max_cost_per_day: perDay },
        calls_per_minute: rates.size > 0 ? Object.fromEntries(rates) : undefined,
      },
    };
  },
});

const isoTime = (at: number): string => new Date(at).toISOString();

const blockDocument = ({ model, why, since, state, retryAfterSeconds }: Health): JsonObject => ({
  model,
  why,
  since: isoTime(since),
  again_in_s: retryAfterSeconds,
  until: state === 'quarantined' ? 'the key is changed, or polylogue doctor finds it valid' : undefined,
});

function cacheDocument({ created, expires, ...cache }: VendorCache): JsonObject {
  return { ...cache, created: isoTime(created), expires: isoTime(expires) };
}

function spentDocument(rows: readonly SpendRow[]): JsonObject {
  const { costUsd, calls, unpriced, usage } = spendTotal(rows);
  const kinds = spendByKind(rows).filter(({ kind }) => kind !== 'answers');
  return {
    cost_usd: roundedUsd(costUsd),
    calls,
    unpriced_calls: unpriced || undefined,
    estimated_calls: usage.estimated,
    tokens: { input: usage.input, output: usage.output, cache_read: usage.cacheRead },
    fees: kinds.length > 0 ? kinds.map(({ kind, ...fee }) => ({ kind, ...feeDocument(fee) })) : undefined,
  };
}
