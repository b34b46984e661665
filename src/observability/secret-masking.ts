import { createHmac } from 'node:crypto';
import type { AppEvent } from '../core/events.ts';
import type { Mask, Masked, MaskedPlace } from '../core/ports.ts';
import { maskValue } from '../telemetry/mask-value.ts';
import { findPrivateKeys } from '../telemetry/private-keys.ts';
import { assignmentFinders } from '../telemetry/secret-assignments.ts';
import { joinSpans, type Span } from '../telemetry/spans.ts';
import { contextFinders } from './secret-contexts.ts';
import { findTokens } from './secret-tokens.ts';

export interface MaskParts {
  /** Keys the hashes, so that a placeholder can't be tried against guesses. Not itself a value to mask. */
  secret: string;
  /** The operator's own keys: masked wherever they stand, whatever they look like. */
  keys: readonly string[];
  /** Further detectors; only `mask` asks them. */
  sources?: readonly ((text: string) => Promise<readonly Span[]>)[];
}

export interface SecretMask {
  mask: Mask;
  /** The same for short texts, without further detectors and without a pause. */
  maskSync(text: string, scope: string): Masked;
  /** A copy of plain data with all its texts masked, and fields that are named like secrets (headers, passwords) whole. */
  maskDeep(value: AppEvent): AppEvent;
  maskDeep(value: unknown): unknown;
  /** The same for large data: what `lift` answers stands in the place of bytes and of texts longer than `over` characters, which it gets unmasked. */
  maskLifting(value: unknown, over: number, lift: (part: string | Uint8Array) => unknown): unknown;
  /** Secrets that came up while the process runs, all of them each time; those that were told of before are masked for a while yet. */
  know(secrets: readonly string[]): void;
}

type Finder = (text: string) => Span[];

/** Longer texts are gone through with pauses: each detector takes a few milliseconds a megabyte. */
const pauseFrom = 262_144;
const logScope = 'log';
/** Names of fields, tools and models come again with every event: so many of those without a secret are remembered. */
const rememberedTexts = 2_000;
const rememberedLength = 64;
/** Secrets of before that are still masked: whoever makes new ones all the time must not slow everything down. */
const mostFormer = 64;

export function createMask({ secret, keys, sources = [] }: MaskParts): SecretMask {
  const own = keyFinder(keys.filter(isSecretEnough));
  let told = keyFinder([]);
  const known: readonly Finder[] = [own, text => told(text), findTokens, findPrivateKeys, ...contextFinders];
  const all: readonly Finder[] = [...known, ...assignmentFinders];
  const placeholder = (kind: string, value: string, scope: string): string => {
    const hash = createHmac('sha256', secret).update(`${scope}\0${value}`).digest('hex').slice(0, 8);
    return `[masked:${kind}:${hash}]`;
  };

  const replace = (text: string, scope: string, spans: readonly Span[]): Masked => {
    const found: Record<string, number> = {};
    const parts: string[] = [];
    const places: MaskedPlace[] = [];
    let done = 0;
    for (const { start, end, kind } of joinSpans(spans)) {
      const instead = placeholder(kind, text.slice(start, end), scope);
      parts.push(text.slice(done, start), instead);
      places.push({ start, end, kind, placeholder: instead });
      found[kind] = (found[kind] ?? 0) + 1;
      done = end;
    }
    return {
      text: parts.length === 0 ? text : parts.join('') + text.slice(done),
      found,
      ...(places.length > 0 && { places }),
    };
  };

  const maskSync = (text: string, scope: string): Masked =>
    replace(
      text,
      scope,
      all.flatMap(find => find(text)),
    );

  const mask: Mask = async (text, scope, by) => {
    const spans: Span[] = [];
    for (const find of by === 'model' ? known : all) {
      for (const span of find(text)) spans.push(span);
      if (text.length >= pauseFrom) await new Promise(resolve => setImmediate(resolve));
    }
    for (const found of await Promise.all(sources.map(source => source(text)))) spans.push(...found);
    return replace(text, scope, spans);
  };

  const clean = new Set<string>();
  const maskForLog = (text: string): string => {
    if (clean.has(text)) return text;
    const masked = maskSync(text, logScope).text;
    if (masked === text && text.length <= rememberedLength) {
      if (clean.size >= rememberedTexts) clean.clear();
      clean.add(text);
    }
    return masked;
  };

  const whole = (text: string) => placeholder('secret', text, logScope);
  const forLog = { name: maskForLog, text: maskForLog, whole };

  function maskDeep(value: AppEvent): AppEvent;
  function maskDeep(value: unknown): unknown;
  function maskDeep(value: unknown): unknown {
    return maskValue(value, { ...forLog, bytes: bytes => `[${bytes.byteLength} bytes]` });
  }
  const maskLifting: SecretMask['maskLifting'] = (value, over, lift) =>
    maskValue(value, { ...forLog, bytes: lift, text: text => (text.length > over ? lift(text) : maskForLog(text)) });
  let current: readonly string[] = [];
  let former: readonly string[] = [];
  const know: SecretMask['know'] = secrets => {
    const now = new Set(secrets);
    former = [...former, ...current].filter(secret => !now.has(secret)).slice(-mostFormer);
    current = secrets;
    told = keyFinder([...current, ...former]);
    clean.clear();
  };
  return { mask, maskSync, maskDeep, maskLifting, know };
}

/** Looks for the keys themselves, and for how they stand in an address or within JSON. */
function keyFinder(keys: readonly string[]): Finder {
  const forms = keys.flatMap(key => [key, encodeURIComponent(key.toWellFormed()), JSON.stringify(key).slice(1, -1)]);
  const needles = [...new Set(forms)];
  return text =>
    needles.flatMap(needle => {
      const spans: Span[] = [];
      for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length)) {
        spans.push({ start: at, end: at + needle.length, kind: 'own_key', rank: 0 });
      }
      return spans;
    });
}

/** Local servers take any key, and people give them words (`lm-studio`, `not-needed`) that stand in every other text. */
function isSecretEnough(key: string): boolean {
  return key.length >= 8 && !/^[a-z]{1,15}(?:[-_ ][a-z]{1,15})*$/.test(key);
}
