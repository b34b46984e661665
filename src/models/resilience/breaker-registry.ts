import type { Fault, FaultScope } from '../../core/errors.ts';
import type { BreakerState, Health } from '../../core/model.ts';
import type { Clock, Emit, Random } from '../../core/ports.ts';
import { decoded } from '../../core/text.ts';
import { Breaker, type BreakerScope, breakerRules, notAskedBecause, scopesOf, type Upstream } from './breaker.ts';
import { type BreakerParts, SharedBreakers } from './shared-breakers.ts';

/** Two of each model, those of keys and accounts aside: names that callers make up must not fill the memory. */
const maxPlaces = 2_000;

/** Why something is not asked. */
export interface BreakerBlock {
  scope: FaultScope;
  state: Exclude<BreakerState, 'closed'>;
  /** The class of the failure that opened it. */
  cause: string;
  failures: number;
  /** Infinite for a quarantine. */
  waitMs: number;
}

/** A fault that is lasting opens its breaker at once, until the configuration changes. */
export interface CountedFault extends Fault {
  cause: string;
  /** How long the vendor asks to be left alone. */
  askedMs?: number;
}

/** The permission for one attempt. It is ended once, by one of its three. */
export interface BreakerPermit {
  succeeded(latencyMs: number): void;
  /** A piece of the answer came: if this call was the one that tries, others may follow. */
  works(): void;
  /** `answered`: the vendor did answer, so that the way to it and the key are sound as far as this attempt tells. */
  failed(fault: CountedFault | undefined, answered: boolean): void;
  /** It says nothing about the provider: the caller gave up. */
  abandoned(): void;
}

/** No call waits longer for a vendor: one that asks for more is left alone at once. */
const longAskedMs = 60_000;
/** While a call tries whether it works again, nobody knows how long that takes; it is worth asking again by then. */
const soonMs = 5_000;

/** All breakers of one process. */
export class BreakerRegistry {
  readonly #clock: Clock;
  readonly #emit: Emit;
  readonly #places = new Map<string, BreakerScope>();
  readonly #shared: SharedBreakers;
  /** Names of those that are not closed. */
  readonly #troubled = new Set<string>();

  constructor({ clock, random, emit, state }: BreakerParts & { random: Random }) {
    this.#clock = clock;
    this.#emit = emit;
    const turn = (place: BreakerScope, to: BreakerState) => this.#turn(place, to);
    this.#shared = new SharedBreakers({ clock, state, emit, turn, self: random.uuid(), places: this.#places });
  }

  /** Learns what other processes found; does nothing when it did a moment ago. */
  refresh(): Promise<void> {
    return this.#shared.refresh();
  }

  /** What keeps this model from being asked at this moment. */
  blocked(upstream: Upstream, model: string): BreakerBlock | undefined {
    // Routing asks for hundreds of models that were never called: nothing is kept for those.
    if (!this.#hasTrouble(upstream, model)) return undefined;
    const now = this.#clock.monotonic();
    let longest: BreakerBlock | undefined;
    for (const place of this.#placesOf(upstream, model)) {
      const waitMs = place.breaker.waitMs(now);
      if (waitMs > (longest?.waitMs ?? 0)) longest = blockOf(place, waitMs);
    }
    return longest;
  }

  /**
   * As `blocked`, and where it is time to try again, whether this attempt is the one that tries. What comes of it is told as
   * caused by the call `reqId`.
   */
  async admit(
    upstream: Upstream,
    model: string,
    probeMs: number,
    reqId: string,
  ): Promise<BreakerPermit | BreakerBlock> {
    const block = this.blocked(upstream, model);
    if (block) return block;
    const found = this.#placesOf(upstream, model);
    const probes: BreakerScope[] = [];
    for (const place of found) {
      if (place.breaker.state === 'closed') continue;
      const answer = await this.#probe(place, Math.min(probeMs, breakerRules.maxPauseMs), reqId);
      if (answer === 'mine') probes.push(place);
      if (answer !== 'taken') continue;
      for (const mine of probes) this.#abandon(mine, reqId);
      return blockOf(place, Math.max(1_000, place.breaker.waitMs(this.#clock.monotonic())));
    }
    return this.#pass(found, probes, reqId);
  }

  /** Resolves once what was found is where other processes find it. */
  settled(): Promise<void> {
    return this.#shared.settled();
  }

  /** The key works: a quarantine ends. */
  async release(upstream: Upstream): Promise<void> {
    const key = this.#placesOf(upstream, '').find(({ scope }) => scope === 'key');
    if (key?.breaker.state === 'quarantined') this.#turn(key, 'closed');
    if (key) await this.#shared.closed(key, true);
  }

  health(upstreams: readonly Upstream[]): Health[] {
    const now = this.#clock.monotonic();
    for (const name of this.#shared.records.keys()) {
      const [, endpoint, scope, owner = '', model = ''] = name.split('/');
      const upstream = upstreams.find(each => each.endpoint === endpoint);
      if (!upstream) continue;
      if (scope === 'model') this.#placesOf(upstream, decoded(owner));
      else if (owner === upstream.key) this.#placesOf(upstream, decoded(model));
    }
    return [...this.#places.values()].filter(place => isWorthTelling(place, now)).map(place => healthOf(place, now));
  }

  #hasTrouble(upstream: Upstream, model: string): boolean {
    const { records } = this.#shared;
    if (this.#troubled.size === 0 && records.size === 0) return false;
    return scopesOf(upstream, model).some(({ name }) => this.#troubled.has(name) || records.has(name));
  }

  #placesOf(upstream: Upstream, model: string): readonly BreakerScope[] {
    return scopesOf(upstream, model).map(what => {
      const known = this.#places.get(what.name);
      if (known) return known;
      if (this.#places.size >= maxPlaces) this.#forgetOne();
      const place = { ...what, breaker: new Breaker(this.#clock.now()) };
      this.#places.set(what.name, place);
      this.#shared.adopt(place);
      return place;
    });
  }

  #forgetOne(): void {
    for (const { name, model, breaker } of this.#places.values()) {
      // One whose pause is over keeps nothing from being asked, and may never be asked again.
      if (model === undefined || breaker.waitMs(this.#clock.monotonic()) > 0) continue;
      this.#places.delete(name);
      this.#troubled.delete(name);
      return;
    }
  }

  /** Everything up to the first await happens before another call of this process gets a turn: one of them tries. */
  #probe(place: BreakerScope, probeMs: number, reqId: string): Promise<'mine' | 'closed' | 'taken'> | 'taken' {
    const { breaker } = place;
    const now = this.#clock.monotonic();
    if (breaker.waitMs(now) > 0) return 'taken';
    this.#turn(place, 'half_open', reqId);
    breaker.probing = true;
    breaker.readyAt = now + probeMs;
    return this.#shared.claim(place, probeMs);
  }

  #pass(found: readonly BreakerScope[], probes: BreakerScope[], reqId: string): BreakerPermit {
    return {
      succeeded: latencyMs => {
        const now = this.#clock.monotonic();
        for (const { breaker, scope } of found) breaker.succeeded(now, scope === 'model' ? latencyMs : undefined);
        for (const place of probes) this.#close(place, reqId);
      },
      works: () => {
        for (const place of probes.splice(0)) this.#close(place, reqId);
      },
      failed: (fault, answered) => {
        const failing = fault && found.find(({ scope }) => scope === fault.scope);
        if (failing) this.#count(failing, fault, probes.includes(failing), reqId);
        for (const place of probes) {
          if (place === failing) continue;
          // An answer shows that the way is open, even one that refused something else.
          if (answered && (fault === undefined || place.scope === 'key')) this.#close(place, reqId);
          else this.#abandon(place, reqId);
        }
      },
      abandoned: () => {
        for (const place of probes) this.#abandon(place, reqId);
      },
    };
  }

  #count(place: BreakerScope, { cause, lasting, askedMs = 0 }: CountedFault, wasProbe: boolean, reqId: string): void {
    const { breaker } = place;
    const tooMany = breaker.failed(this.#clock.monotonic(), cause);
    if (lasting) {
      if (breaker.state === 'quarantined') return;
      this.#turn(place, 'quarantined', reqId);
      void this.#shared.opened(place);
    } else if (wasProbe || tooMany || (breaker.state === 'closed' && askedMs > longAskedMs)) {
      breaker.opens++;
      breaker.readyAt = this.#clock.monotonic() + breaker.pauseMs(breaker.opens, askedMs);
      this.#turn(place, 'open', reqId);
      void this.#shared.opened(place);
    }
  }

  #close(place: BreakerScope, reqId: string): void {
    this.#turn(place, 'closed', reqId);
    void this.#shared.closed(place);
  }

  #abandon(place: BreakerScope, reqId: string): void {
    place.breaker.readyAt = this.#clock.monotonic();
    this.#turn(place, 'open', reqId);
    void this.#shared.giveBack(place);
  }

  #turn(place: BreakerScope, to: BreakerState, reqId?: string): void {
    const { breaker, provider, scope, model } = place;
    const { state: from, consecutive, cause } = breaker;
    const now = this.#clock.monotonic();
    const counts = breaker.counts.sum(now);
    breaker.turn(to, this.#clock.now());
    if (to === 'closed') this.#troubled.delete(place.name);
    else this.#troubled.add(place.name);
    if (from === to) return;
    const retryInMs = to === 'open' ? Math.round(breaker.waitMs(now)) : undefined;
    const what = { ...(reqId !== undefined && { reqId }), provider, model, scope, from, to, class: cause };
    this.#emit({ type: 'breaker.change', ...what, ...counts, consecutive, retryInMs });
  }
}

function blockOf({ breaker, scope }: BreakerScope, waitMs: number): BreakerBlock {
  const state = breaker.state === 'closed' ? 'open' : breaker.state;
  const shownMs = state === 'half_open' ? Math.min(waitMs, soonMs) : waitMs;
  return { scope, state, cause: breaker.cause ?? 'unknown', failures: breaker.consecutive, waitMs: shownMs };
}

/** All four of a model are kept; those that nothing ever happened to say nothing. */
function isWorthTelling({ scope, model, breaker }: BreakerScope, now: number): boolean {
  if (breaker.state !== 'closed') return true;
  if (scope === 'model') return model !== '' && (breaker.latencyMs !== undefined || breaker.cause !== undefined);
  return breaker.cause !== undefined && breaker.counts.sum(now).failures > 0;
}

function healthOf({ provider, model, scope, breaker }: BreakerScope, now: number): Health {
  const { state, consecutive, latencyMs, cause, since } = breaker;
  const waitMs = breaker.waitMs(now);
  return {
    provider,
    model,
    scope,
    state,
    ...breaker.counts.sum(now),
    consecutive,
    ...(latencyMs !== undefined && { latencyMs: Math.round(latencyMs) }),
    ...(cause !== undefined && { class: cause }),
    ...(state !== 'closed' && { why: notAskedBecause(state, cause ?? 'unknown', consecutive) }),
    since,
    ...(Number.isFinite(waitMs) && waitMs > 0 && { retryAfterSeconds: Math.ceil(waitMs / 1_000) }),
  };
}
