import { z } from 'zod';
import { AppError, configError } from '../../core/errors.ts';
import type { Clock, KeptTexts } from '../../core/ports.ts';
import { checkedBaseUrl } from '../provider.ts';
import { bounded } from '../resilience/bounded-body.ts';
import { badUpstream, toModelError } from '../resilience/errors.ts';
import { type FactsByProvider, ourPart, readModelsDev } from './models-dev.ts';

const keptName = 'models-dev.json';
const maxTagLength = 200;
const patienceMs = 30_000;

export interface RefreshParts {
  kept?: KeptTexts;
  clock: Clock;
  /** Address of api.json. */
  url: string;
}

/** What a refresh brought. */
export interface Refreshed {
  /** False: the source has nothing newer than what was there. */
  changed: boolean;
  models: number;
  providers: readonly string[];
}

/** The body stays as the source told it: a later release of ours may read more of it. */
const keptSchema = z.object({ version: z.literal(1), at: z.number(), etag: z.string().optional(), body: z.unknown() });

/** Undefined when nothing was ever fetched, or what was is damaged. */
export async function keptFacts(
  kept: KeptTexts | undefined,
): Promise<{ at: number; etag?: string; facts: FactsByProvider } | undefined> {
  const text = await kept?.read(keptName);
  if (text === undefined) return undefined;
  try {
    const file = keptSchema.parse(JSON.parse(text));
    const facts = readModelsDev(file.body);
    return facts && { at: file.at, ...(file.etag === undefined ? {} : { etag: file.etag }), facts };
  } catch {
    // Damaged or of another release: as if it were not there, and the next refresh writes it anew.
    return undefined;
  }
}

/** Fetches the facts and keeps them. Throws an `AppError`; what was kept before then stays. */
export async function refreshFacts({ kept, clock, url }: RefreshParts, signal: AbortSignal): Promise<Refreshed> {
  if (!kept) {
    throw configError('Nothing may be written, so that no facts can be kept.', {
      next: 'Start it without --private and with a store on disk.',
    });
  }
  const before = await keptFacts(kept);
  const answer = await fetched(url, before?.etag, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
  if (answer === 'unchanged') return summary(before?.facts ?? {}, false);
  const body = ourPart(answer.body);
  const facts = readModelsDev(body);
  if (!facts) {
    throw badUpstream(`${url} answered with something that is no list of models.`, false, advice);
  }
  const file = { version: 1, at: clock.now(), ...(answer.etag === undefined ? {} : { etag: answer.etag }), body };
  await kept.write(keptName, JSON.stringify(file));
  return summary(facts, true);
}

const advice =
  'What was fetched before stays. Retry later, or check whether a proxy answers in its place; MODELS_DEV_URL sets another URL.';

async function fetched(
  url: string,
  etag: string | undefined,
  signal: AbortSignal,
): Promise<'unchanged' | { body: unknown; etag?: string }> {
  const address = checkedBaseUrl(url, 'MODELS_DEV_URL');
  const origin = { provider: 'models.dev', model: 'its list of models', now: 0 };
  try {
    const headers = { accept: 'application/json', ...(etag === undefined ? {} : { 'if-none-match': etag }) };
    const response = bounded(await fetch(address, { headers, signal }));
    if (response.status === 304 && etag !== undefined) {
      await response.body?.cancel();
      return 'unchanged';
    }
    const text = (await response.text()) || response.statusText;
    if (!response.ok) {
      throw Object.assign(new Error('no list of models'), { statusCode: response.status, responseBody: text });
    }
    const tag = response.headers.get('etag');
    return { body: JSON.parse(text), ...(tag === null || tag.length > maxTagLength ? {} : { etag: tag }) };
  } catch (error) {
    if (error instanceof SyntaxError)
      throw badUpstream(`${url} answered with something else than JSON.`, false, advice);
    const { kind, message, details } = toModelError(error, origin);
    throw new AppError(kind, message, { ...details, next: advice });
  }
}

function summary(facts: FactsByProvider, changed: boolean): Refreshed {
  const rows = Object.values(facts);
  return { changed, models: rows.reduce((sum, list) => sum + list.length, 0), providers: Object.keys(facts) };
}
