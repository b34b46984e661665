import { z } from 'zod';
import { orAbort } from '../../core/concurrency.ts';
import { isAppError } from '../../core/errors.ts';
import { hashOf } from '../../core/ids.ts';
import { jsonOf } from '../../core/json.ts';
import { efforts } from '../../core/model.ts';
import type { Clock, Emit, SharedState } from '../../core/ports.ts';
import type { Connection, LiveModel } from '../provider.ts';
import type { ConfiguredProvider } from './connections.ts';
import { inputKinds } from './models-dev.ts';

/** A listing is asked for again after this time. */
const freshMs = 24 * 3_600_000;
/** On a server of one's own, models come and go with a word. */
const decidingFreshMs = 60_000;
/** A listing that failed is asked for again sooner. */
const failedFreshMs = 60_000;
/** Where nobody waits for it, a listing that failed is left alone for longer: some servers have none. */
const renewAfterMs = 3_600_000;
/** A call goes first; the list is for those after it. */
const aheadMs = 500;
/** A vendor that does not list its models in this time is used by name alone. */
const patienceMs = 3_000;
/** Aggregators list some hundred. */
const maxModels = 5_000;
const maxIdLength = 300;

/** What a vendor listed last. */
export interface Listing {
  models: readonly LiveModel[];
  /** Epoch milliseconds of the answer; absent when it never answered. */
  at?: number;
  /** The last try brought a whole list. */
  complete: boolean;
  /** Why the last try did not. */
  failure?: string;
}

export interface ListingParts {
  connection(providerId: string): Promise<Connection>;
  clock: Clock;
  emit: Emit;
  /** Where lists are for other processes too; absent: for this one alone. */
  state?: SharedState;
}

/** The live lists of all providers, each asked for when it is needed and kept for a day. */
export type Listings = ReturnType<typeof createListings>;

/** Whose list it is. */
type Lister = Pick<ConfiguredProvider, 'definition' | 'settings'>;

interface Parts extends ListingParts {
  /** Aborted when nobody is to be asked any more, and nothing to be kept or told. */
  over: AbortSignal;
}

interface State {
  listing?: Listing;
  /** Reading what another process, or an earlier one, kept. */
  loading?: Promise<void>;
  asking?: Promise<Listing>;
  /** It is about to be asked. */
  isDue?: boolean;
  /** Epoch milliseconds of the last try, failed or not. */
  triedAt?: number;
}

export function createListings(given: ListingParts) {
  const over = new AbortController();
  const parts: Parts = { ...given, over: over.signal };
  const states = new Map<string, State>();

  const stateOf = ({ definition: { id } }: Lister): State => {
    const state = states.get(id) ?? {};
    states.set(id, state);
    return state;
  };

  const loaded = async (lister: Lister): Promise<State> => {
    const state = stateOf(lister);
    state.loading ??= load(parts, lister, state);
    await state.loading;
    return state;
  };

  /** The list at hand where it is fresh. */
  const fresh = (lister: Lister): Listing | undefined => {
    const { listing, triedAt } = stateOf(lister);
    if (!listing || triedAt === undefined) return undefined;
    const age = parts.clock.storeTime() - triedAt;
    const freshFor = !listing.complete ? failedFreshMs : lister.definition.listDecides ? decidingFreshMs : freshMs;
    return age >= 0 && age < freshFor ? listing : undefined;
  };

  /** What is known if it is fresh; else the vendor is asked, for 3 s at the most. Calls that come meanwhile share one try. */
  const current = async (lister: Lister): Promise<Listing> => {
    const state = await loaded(lister);
    const listing = fresh(lister);
    if (listing) return listing;
    // Another process may have asked meanwhile.
    const reloaded = () => load(parts, lister, state).then(() => fresh(lister) ?? ask(parts, lister, state));
    state.asking ??= reloaded().finally(() => {
      state.asking = undefined;
    });
    return state.asking;
  };

  return {
    isFresh: (lister: Lister) => fresh(lister) !== undefined,
    /** What is known, however old, without asking the vendor. */
    known: async (lister: Lister) => (await loaded(lister)).listing,
    current,
    /** Asks the vendor for a list that is old, a moment later, so that the call goes first; one that failed within the hour is let be. */
    renew(lister: Lister) {
      const state = stateOf(lister);
      const { triedAt, listing } = state;
      const failed = triedAt !== undefined && listing?.complete === false;
      if (state.isDue || (failed && parts.clock.storeTime() - triedAt < renewAfterMs)) return;
      state.isDue = true;
      parts.clock.after(aheadMs, () => {
        state.isDue = false;
        if (!over.signal.aborted) void current(lister);
      });
    },
    close: () => over.abort(),
  };
}

async function ask(parts: Parts, lister: Lister, state: State): Promise<Listing> {
  const { connection, clock } = parts;
  let signal: AbortSignal | undefined;
  try {
    const { list } = await connection(lister.definition.id);
    signal = AbortSignal.any([AbortSignal.timeout(patienceMs), parts.over]);
    const models = list && (await orAbort(list(signal), signal));
    const at = clock.storeTime();
    state.listing = { models: (models ?? []).slice(0, maxModels).flatMap(sound), at, complete: models !== undefined };
    state.triedAt = at;
    if (models && !lister.definition.listDecides) await keep(parts, lister, state.listing);
  } catch (error) {
    const told = isAppError(error) ? error.message : String(error);
    const failure = signal?.aborted ? `no answer within ${patienceMs / 1_000} s` : told;
    warn(parts, lister, `The server did not list its models: ${failure}`);
    // What it had is the best guess at what it has.
    state.listing = { models: [], ...state.listing, complete: false, failure };
    state.triedAt = clock.storeTime();
  }
  return state.listing;
}

/** Servers write what they like. */
function sound({ window, maxOutput, ...model }: LiveModel): LiveModel[] {
  if (model.id === '' || model.id.length > maxIdLength || /\p{C}/u.test(model.id)) return [];
  const isCount = (value?: number) => value !== undefined && Number.isInteger(value) && value > 0;
  return [{ ...model, ...(isCount(window) && { window }), ...(isCount(maxOutput) && { maxOutput }) }];
}

const usd = z.number().nonnegative();

const keptSchema = () =>
  z.object({
    at: z.number(),
    models: z.array(
      z.object({
        id: z.string().min(1),
        window: z.int().positive().optional(),
        maxOutput: z.int().positive().optional(),
        input: z.array(z.enum(inputKinds)).optional(),
        reasoning: z.boolean().optional(),
        efforts: z.array(z.enum(efforts)).optional(),
        price: z.object({ in: usd, out: usd, cacheRead: usd.optional(), cacheWrite: usd.optional() }).optional(),
      }),
    ),
  });

/** A list that is too old to be believed is still the best guess while its vendor does not answer. */
const keptForMs = 30 * freshMs;

async function load(parts: Parts, lister: Lister, state: State) {
  if (lister.definition.listDecides) return;
  try {
    const kept = await parts.state?.get(keyOf(lister));
    const found = kept === undefined ? undefined : keptSchema().safeParse(kept).data;
    if (!found || found.at > parts.clock.storeTime() || found.at <= (state.listing?.at ?? 0)) return;
    state.listing = { models: found.models, at: found.at, complete: true };
    state.triedAt = found.at;
  } catch (error) {
    // The vendor can be asked as well.
    warn(parts, lister, `A kept list could not be read: ${error}`);
  }
}

async function keep(parts: Parts, lister: Lister, { models, at = 0 }: Listing) {
  try {
    await parts.state?.change(keyOf(lister), keptForMs, () => jsonOf({ at, models }));
  } catch (error) {
    // The list serves this process all the same.
    warn(parts, lister, `The list could not be kept: ${error}`);
  }
}

function warn({ emit, over }: Parts, { definition: { id } }: Lister, message: string): void {
  if (!over.aborted) emit({ type: 'warning', where: `models of ${id}`, message });
}

/** Of another key or address, another list; neither can be read from it. */
function keyOf({ definition: { id }, settings }: Lister): string {
  const entries = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `listing/${id}/${hashOf(JSON.stringify(entries)).slice(0, 16)}`;
}
