import type { Principal } from '../../core/tool-host.ts';
import type { Holding } from '../../engine/jobs/holding.ts';
import type { Identity } from '../../engine/once/identify.ts';
import type { SharedWork } from '../../engine/once/shared-work.ts';
import { type StillSoOptions, stillSo, type Trace } from '../../engine/once/still-so.ts';
import type { Logged, LoggedCall } from './call-log.ts';

export interface FindOptions extends StillSoOptions {
  holding: Pick<Holding, 'isDead'>;
  /** Names this process. */
  holder: string;
  /** The work of this process, by the ids of its calls. */
  running: ReadonlyMap<string, SharedWork>;
  /** A call as its record is now. */
  look(id: string): Promise<LoggedCall | undefined>;
}

/** What is left of an earlier call that this one repeats. */
export type Earlier =
  | { state: 'here'; call: LoggedCall; work: SharedWork }
  | { state: 'elsewhere'; call: LoggedCall }
  /** It ended: with a reply, or without one. */
  | { state: 'ended'; call: LoggedCall }
  /** Its process died over it. */
  | { state: 'dead'; call: LoggedCall; trace: Trace };

/**
 * The newest earlier call whose reply may be had for this one. One that somebody waits for is not, unless both bear the
 * caller's own name for it: two callers may well want two answers.
 */
export async function findEarlier(
  options: FindOptions,
  { calls }: Logged,
  identity: Identity,
  principal: Principal,
): Promise<Earlier | undefined> {
  for (const call of calls.toReversed()) {
    const earlier = await stateOf(options, call, identity.named);
    if (!earlier) continue;
    const trace =
      identity.named && earlier.state !== 'dead' ? { turns: [] } : await stillSo(options, call, identity, principal);
    if (trace) return earlier.state === 'dead' ? { ...earlier, trace } : earlier;
  }
  return undefined;
}

async function stateOf(
  { running, holder, holding, look }: FindOptions,
  call: LoggedCall,
  named: boolean,
): Promise<Exclude<Earlier, { state: 'dead' }> | { state: 'dead'; call: LoggedCall } | undefined> {
  if (call.status !== 'running') return { state: 'ended', call };
  const work = running.get(call.id);
  if (work) return named || !work.isAwaited() ? { state: 'here', call, work } : undefined;
  if (call.holder === holder || (await holding.isDead(call.holder))) {
    // It may have ended in order since its record was read, and its process with it.
    const now = await look(call.id);
    return now && (now.status === 'running' ? { state: 'dead', call: now } : { state: 'ended', call: now });
  }
  return named || call.lost ? { state: 'elsewhere', call } : undefined;
}
