import { isRecord, type JsonObject } from '../core/json.ts';
import type { ToolReply } from '../core/tool-host.ts';

export type ReplyFormat = 'json' | 'structured' | 'markdown';

/** A reply as its one text block: the document as JSON, or what a person would want to read first. */
export function rendered(reply: Omit<ToolReply, 'text'>, format: ReplyFormat): ToolReply {
  switch (format) {
    case 'json':
      return { ...reply, text: JSON.stringify(reply.document) };
    case 'structured':
      return { ...reply, text: JSON.stringify(reply.document), structured: reply.document };
    case 'markdown':
      return { ...reply, text: markdown(reply.document, reply.isError) };
  }
}

/** Keys that the page shows in places of their own. */
const placed = new Set([
  'status',
  'content',
  'content_type',
  'metadata',
  'continuation_offer',
  'continuation_id',
  'error',
]);

function markdown(document: JsonObject, isError: boolean): string {
  const { content, metadata, continuation_offer: offer, error } = document;
  const rest = Object.entries(document).filter(([key]) => !placed.has(key));
  const sections = [
    isError && isRecord(error) ? `${error.message}\n\n${error.next ?? ''}` : '',
    typeof content === 'string' ? content : '',
    ...rest.map(([key, value]) => `## ${titleOf(key)}\n${valueText(value)}`),
    isRecord(metadata) ? metadataSection(metadata, outcome(document, isError)) : '',
    isRecord(metadata) && isRecord(metadata.files) ? `## Files Processed\n${list(metadata.files)}` : '',
    isRecord(offer) ? `## Continuation ID\n${offer.continuation_id}\n${offer.note}` : '',
  ];
  return sections.filter(section => section.trim() !== '').join('\n\n');
}

/** The three words that callers of the first design's pages know. */
function outcome({ status }: JsonObject, isError: boolean): string {
  if (isError) return 'error';
  return status === 'partial' ? 'partial' : 'success';
}

function metadataSection(metadata: Record<string, unknown>, status: string): string {
  const usage = isRecord(metadata.usage) ? metadata.usage : {};
  const facts = {
    status,
    tool_name: metadata.tool_name,
    model_used: metadata.model_used,
    provider_used: metadata.provider_used,
    thinking_mode: metadata.effort,
    tokens_used: typeof usage.input === 'number' ? usage.input + Number(usage.output) : undefined,
    cost_usd: metadata.cost_usd,
    response_time:
      typeof metadata.latency_ms === 'number' ? `${(metadata.latency_ms / 1_000).toFixed(1)} s` : undefined,
    warnings: metadata.warnings,
  };
  return `## Metadata\n${list(facts)}`;
}

function list(facts: Record<string, unknown>): string {
  return Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `- ${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

function titleOf(key: string): string {
  const words = key.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every(item => typeof item === 'string'))
    return value.map(item => `- ${item}`).join('\n');
  return `\`\`\`json\n${JSON.stringify(value, undefined, 2)}\n\`\`\``;
}
