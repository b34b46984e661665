import type { Product } from '../../app/compose-product.ts';
import { inputError } from '../../core/errors.ts';
import { isRecord, type Json, type JsonObject, numberIn, recordsIn, textIn } from '../../core/json.ts';
import type { ExchangeLine, ExchangeRecord } from '../../core/ports.ts';
import { safeCut } from '../../core/text.ts';
import { type CommandContext, defineCommand, flag, isOn, numberFlag, textFlag } from '../command/command.ts';
import { type OpenProduct, openProduct } from '../command/open-product.ts';
import type { Output } from '../command/output.ts';

type Replay = NonNullable<Product['replay']>;

const usual = 20;
const maxEntries = 1_000;

export const replay = defineCommand({
  name: 'replay',
  group: 'Threads',
  summary: 'Show recorded model requests and responses (COMMS_LOG)',
  usage: '[exchange]',
  words: ['last'],
  flags: [
    flag('limit <number>', `Maximum number of exchanges, up to ${maxEntries} (default: ${usual})`),
    flag('call <id>', 'Show only this call (its req_id)'),
    flag('tool <name>', 'Show only this tool'),
    flag('send', 'Send the exchange again to the same model; this costs money'),
  ],
  examples: [
    ['polylogue replay', 'List the newest exchanges'],
    ['polylogue replay last', 'Show the newest exchange'],
    ['polylogue replay ID --json', 'Print everything recorded about it'],
    ['polylogue replay ID --send', 'Send the request again'],
  ],
  async run(context) {
    const { args, flags } = context;
    const limit = numberFlag(flags, 'limit', { min: 1, max: maxEntries }) ?? usual;
    if (args.length === 0 && isOn(flags, 'send'))
      throw inputError('--send needs an exchange.', { next: 'Name one that "polylogue replay" lists.' });
    return openProduct(context, open => replayWith(context, open, limit));
  },
});

async function replayWith({ args: [id], flags, out, config }: CommandContext, open: OpenProduct, limit: number) {
  const { replay: kept } = open.product;
  if (!kept)
    throw inputError('No records: nothing is written to disk.', {
      next: 'Run without --private and with a store other than memory.',
    });
  const filter = { reqId: textFlag(flags, 'call'), tool: textFlag(flags, 'tool') };
  if (id === undefined) return showList(out, await kept.list({ ...filter, limit }), config.values.app.commsLog);
  const [newest] = id === 'last' ? await kept.list({ ...filter, limit: 1 }) : [];
  const found = await kept.find(newest?.exchange ?? id);
  if (!found) {
    const next = 'Name one that "polylogue replay" lists; set COMMS_LOG=true to record exchanges from now on.';
    throw inputError(`Unknown exchange "${id}".`, { next });
  }
  if (isOn(flags, 'send')) await sendAgain(out, kept, found, open.signal);
  else showExchange(out, found);
}

async function sendAgain(out: Output, kept: Replay, found: ExchangeRecord, signal: AbortSignal): Promise<void> {
  const answer = await out.answer();
  const { text, calls, usage, costUsd, latencyMs } = await kept.send(found, { signal, onText: answer.add });
  answer.end();
  const { provider, model } = found;
  const cost = { usage: { ...usage }, cost_usd: costUsd, elapsed_ms: latencyMs };
  out.document({ status: 'success', provider, model, text, ...(calls.length > 0 && { calls }), ...cost });
  for (const call of calls) out.line(`(calls ${call})`);
}

function showList(out: Output, found: readonly ExchangeRecord[], isOn: boolean): void {
  out.document({ status: 'success', kept: isOn, exchanges: found.map(documentOf) });
  if (found.length === 0) out.line('No recorded exchanges.');
  if (found.length === 0 && !isOn) out.line('Set COMMS_LOG=true to record them from now on.');
  for (const exchange of found) {
    const { exchange: id, at, tool, provider, model, outcome, elapsedMs } = exchange;
    const took = elapsedMs === undefined ? '' : `${(elapsedMs / 1_000).toFixed(1)} s`;
    const colour = outcome === 'ok' ? 'green' : outcome === 'error' ? 'red' : 'yellow';
    const who = `${tool}  ${provider}:${model}`;
    const outcomeText = out.style(colour, outcome.padEnd(5));
    out.line(out.style('cyan', id), `  ${timeOf(at)}  `, outcomeText, `  ${took.padStart(7)}  ${who}`);
  }
}

const timeOf = (at: number): string => new Date(at).toISOString().slice(0, 19).replace('T', ' ');

function documentOf(record: ExchangeRecord): JsonObject {
  const { at, reqId, exchange, tool, provider, model, outcome, elapsedMs, lines } = record;
  const { usage, costUsd } = lines.findLast(({ kind }) => kind === 'response' || kind === 'error')?.payload ?? {};
  const asked = { exchange, req_id: reqId, at: new Date(at).toISOString(), tool, provider, model };
  const cost_usd = typeof costUsd === 'number' ? costUsd : undefined;
  return { ...asked, outcome, elapsed_ms: elapsedMs, usage: isRecord(usage) ? jsonOf(usage) : undefined, cost_usd };
}

/** Bytes as base64. */
function jsonOf(value: unknown): Json {
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
  if (Array.isArray(value)) return value.map(jsonOf);
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, jsonOf(each)]));
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

function showExchange(out: Output, found: ExchangeRecord): void {
  const { reqId, exchange, tool, provider, model, lines } = found;
  const told = lines.map(({ at, direction, kind, payload }) => {
    return { at: new Date(at).toISOString(), direction, kind, payload: jsonOf(payload) };
  });
  out.document({ status: 'success', ...documentOf(found), lines: told });
  out.line(`${exchange}  ${provider}:${model}, ${tool}, call ${reqId}`);
  for (const { at, direction, kind, payload } of lines) {
    const took = kind === 'request' ? '' : `, after ${(numberIn(payload.elapsedMs) / 1_000).toFixed(1)} s`;
    out.line('');
    out.line(out.style('bold', `${direction === 'out' ? '→' : '←'} ${kind}  ${timeOf(at)}${took}`));
    for (const text of textsOf(kind, payload)) out.line(text);
  }
}

/** What a person wants to read of a line; the rest is in --json. */
function textsOf(kind: string, payload: ExchangeLine['payload']): string[] {
  const { messages, text, error, said } = payload;
  if (kind === 'request') return recordsIn(messages).flatMap(messageText);
  const calls = recordsIn(said).filter(({ type }) => type === 'call');
  const shown = [...(textIn(text) === '' ? [] : [textIn(text)]), ...calls.map(callText)];
  if (isRecord(error)) return [`${textIn(error.code)} (${textIn(error.class)}): ${textIn(error.message)}`, ...shown];
  return kind === 'response' ? shown : [safeCut(JSON.stringify(jsonOf(payload)), 4_000)];
}

function messageText({ role, section, parts, said, results }: Record<string, unknown>): string[] {
  const heading = section === 'turn' ? `[${textIn(role)}]` : `[${textIn(role)}, ${textIn(section)}]`;
  const lines = recordsIn(said).map(part => (part.type === 'call' ? callText(part) : textIn(part.text)));
  const came = recordsIn(results).map(({ name, text }) => `(result of ${textIn(name)})\n${textIn(text)}`);
  return [heading, ...recordsIn(parts).map(partText), ...lines, ...came];
}

const callText = ({ name, args }: Record<string, unknown>): string => `(calls ${textIn(name)} ${JSON.stringify(args)})`;

function partText({ type, text, mediaType, data, ...rest }: Record<string, unknown>): string {
  if (typeof text === 'string') return text;
  if (data instanceof Uint8Array) return `(${textIn(mediaType)}, ${data.byteLength} bytes)`;
  return isRecord(text) ? `(${textIn(text.missing)})` : `(${textIn(type)} ${JSON.stringify(jsonOf(data ?? rest))})`;
}
