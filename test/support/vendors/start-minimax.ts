import { isRecord } from '../../../src/core/json.ts';
import { cacheMarksOf, checkCacheMarks } from './cache-marks.ts';
import { checkContent, checkSystem } from './check-content.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import { createMarkCache } from './mark-cache.ts';
import { messagesWire } from './messages-wire.ts';
import { minimaxRefusal } from './minimax-refusal.ts';
import { tokensOf } from './prompt.ts';
import { readMessages } from './read-messages.ts';
import type { Refusal } from './refusal.ts';
import { checkMinimaxThinking } from './start-minimax-chat.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import { numberOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

/** What it ignores (`top_k`, `stop_sequences` …) counts as refused: nothing should be sent for nothing. */
const fields: FieldTable = {
  max_tokens: ['integer'],
  messages: ['array'],
  metadata: ['object'],
  model: ['string'],
  output_config: ['object'],
  stream: ['boolean'],
  system: ['string', 'array'],
  temperature: ['number'],
  thinking: ['object'],
  tool_choice: ['object'],
  tools: ['array'],
  top_p: ['number'],
};

function check(body: Record<string, unknown>): Refusal | undefined {
  const fault = firstFieldFault(body, fields, false);
  if (fault) return minimaxRefusal(400, `invalid params, ${fault.field} (2013)`);
  const temperature = numberOf(body.temperature);
  if (temperature !== undefined && (temperature <= 0 || temperature > 1))
    return minimaxRefusal(400, 'invalid params, temperature must be in (0, 1] (2013)');
  const turns = recordsOf(body.messages);
  if (turns[0]?.role !== 'user') return minimaxRefusal(400, 'invalid params, messages must begin with a user (2013)');
  const refused =
    checkMinimaxThinking(body, stringOf(recordOf(body.output_config).effort)) ??
    checkSystem(body.system) ??
    turns.map((turn, index) => checkContent(turn, index, index === turns.length - 1)).find(found => found) ??
    checkCacheMarks(cacheMarksOf(body));
  return refused && minimaxRefusal(400, refused.message);
}

/** MiniMax as Anthropic would speak: POST /messages and GET /models below /anthropic/v1; the key in either header. */
export function startMinimax(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const tokenize = tokensOf;
  const marks = createMarkCache(tokenize);
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    root: '/anthropic/v1',
    routes: { 'POST /messages': 'messages', 'GET /models': 'models' },
    authorise(headers) {
      const [, bearer] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? [];
      const given = [bearer, headers['x-api-key']].filter(key => key !== undefined);
      return given.length > 0 && given.every(key => keys.includes(key)) ? undefined : minimaxRefusal(401);
    },
    check: (_dialect, body) => check(body),
    read: (_dialect, body) => readMessages(body),
    cache(_dialect, body) {
      const { read, short, long } = marks.use(body);
      return {
        read,
        written: short + long,
        // It thinks unless it is told not to. Thoughts are counted as output and not told apart.
        wire: reply =>
          messagesWire(
            { thinking: { type: 'adaptive' }, ...body },
            { ...reply, usage: { ...reply.usage, reasoning: 0 } },
            { short, long },
          ),
      };
    },
    listing: models => ({
      data: models.map(({ id, window }) => ({
        type: 'model',
        id,
        display_name: id,
        created_at: '2026-01-01T00:00:00Z',
        ...(window !== undefined && { max_input_tokens: window }),
      })),
      has_more: false,
      first_id: models[0]?.id ?? null,
      last_id: models.at(-1)?.id ?? null,
    }),
    headers: id => ({ 'trace-id': id }),
    stamp: (body, id) => (isRecord(body) ? { ...body, request_id: id } : body),
    badJson: () => minimaxRefusal(400),
    wrongAddress: () => ({ status: 404, message: '404 page not found', body: '404 page not found' }),
    unknownModel: id => minimaxRefusal(404, `unknown model '${id}' (2013)`),
    tooLong: (_dialect, tokens, window) =>
      minimaxRefusal(400, `invalid params, context window exceeds limit: ${tokens} > ${window} (2013)`),
    statusBody: status => minimaxRefusal(status).body,
  };
  return startVendor(kind, tokenize, options);
}
