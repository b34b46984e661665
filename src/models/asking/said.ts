import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { SaidPart, ToolCall, VendorFacts } from '../../core/message.ts';

/** All that a model says in one attempt, in its order, as it is to stand in the next question. */
export interface Saying {
  take(part: LanguageModelV4StreamPart): void;
  parts(): SaidPart[];
  /** How many calls of tools are among them. */
  calls(): number;
}

type Block = { type: 'text' | 'thought'; text: string; vendor?: VendorFacts };

/** `echo` marks thoughts that their vendor does not sign and wants to see again all the same as its own. */
export function createSaying(signer: string, echo: boolean): Saying {
  const said: (Block | ({ type: 'call'; vendor?: VendorFacts } & ToolCall))[] = [];
  const open = new Map<string, Block>();
  const begin = (type: Block['type'], id: string, metadata: SharedV4ProviderMetadata | undefined) => {
    const block: Block = { type, text: '' };
    open.set(`${type} ${id}`, block);
    said.push(block);
    learn(block, metadata);
    return block;
  };
  const add = (
    type: Block['type'],
    part: { id: string; delta?: string; providerMetadata?: SharedV4ProviderMetadata },
  ) => {
    const block = open.get(`${type} ${part.id}`) ?? begin(type, part.id, undefined);
    block.text += part.delta ?? '';
    learn(block, part.providerMetadata);
  };
  return {
    take(part) {
      switch (part.type) {
        case 'text-start':
          return void begin('text', part.id, part.providerMetadata);
        case 'reasoning-start':
          return void begin('thought', part.id, part.providerMetadata);
        case 'text-delta':
        case 'text-end':
          return add('text', part);
        case 'reasoning-delta':
        case 'reasoning-end':
          return add('thought', part);
        case 'tool-call': {
          if (part.providerExecuted) return;
          const call = { id: freeId(part.toolCallId, said), name: part.toolName, ...argumentsOf(part.input) };
          return void said.push({ type: 'call', ...call, ...withFacts(part.providerMetadata) });
        }
        default:
          return;
      }
    },
    parts: () => said.flatMap((part): SaidPart[] => partsOf(part, signer, echo)),
    calls: () => said.filter(({ type }) => type === 'call').length,
  };
}

/** What is blank and bears no signature says nothing. */
function partsOf(part: SaidPart, signer: string, echo: boolean): SaidPart[] {
  if (part.type === 'call') return [part];
  if (part.text.trim() === '' && part.vendor === undefined) return [];
  return [part.type === 'thought' && echo ? { ...part, vendor: part.vendor ?? { [signer]: {} } } : part];
}

function learn(block: Block, metadata: SharedV4ProviderMetadata | undefined): void {
  const facts = withFacts(metadata).vendor;
  if (!facts) return;
  const names = [...Object.keys(block.vendor ?? {}), ...Object.keys(facts)];
  block.vendor = Object.fromEntries(names.map(name => [name, { ...block.vendor?.[name], ...facts[name] }]));
}

function withFacts(metadata: SharedV4ProviderMetadata | undefined): { vendor?: VendorFacts } {
  if (!metadata || Object.keys(metadata).length === 0) return {};
  const vendor: VendorFacts = JSON.parse(JSON.stringify(metadata));
  return { vendor };
}

/** Vendors answer a call by its id; a server that gives none, or the same one twice, gets ids of ours. */
function freeId(id: string, said: readonly SaidPart[]): string {
  const taken = new Set(said.map(part => (part.type === 'call' ? part.id : '')));
  if (id !== '' && !taken.has(id)) return id;
  for (let number = said.length; ; number++) if (!taken.has(`call_${number}`)) return `call_${number}`;
}

const longestBroken = 20_000;

/** No arguments at all are an empty object to some models. */
function argumentsOf(input: string): Pick<ToolCall, 'args' | 'broken'> {
  if (input.trim() === '') return { args: {} };
  try {
    const value: unknown = JSON.parse(input);
    if (isRecord(value)) return { args: jsonOf(input) };
  } catch {
    // Whoever runs the call tells the model.
  }
  return { args: {}, broken: input.slice(0, longestBroken) };
}

function jsonOf(text: string): JsonObject {
  const value: JsonObject = JSON.parse(text);
  return value;
}
