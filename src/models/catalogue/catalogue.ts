import type { InputKind, ModelInfo, ModelLife, Price } from '../../core/model.ts';
import { efforts } from '../../core/model.ts';
import generated from './catalogue.gen.json' with { type: 'json' };

/** A row as the generator writes it: members at their usual value are left out. */
interface Row {
  id: string;
  name: string;
  aliases?: readonly string[];
  window: number;
  maxOutput: number;
  /** What it reads besides text. */
  input?: readonly string[];
  efforts?: readonly string[];
  thinkingBudget?: { min: number; max: number };
  reasoning?: boolean;
  noTemperature?: boolean;
  noTools?: boolean;
  price?: Price;
  score: number;
  code?: boolean;
  deprecated?: boolean;
  life?: ModelLife;
}

const rowsByProvider: Readonly<Record<string, readonly Row[]>> = generated;
const inputKinds: readonly InputKind[] = ['text', 'image', 'pdf', 'audio', 'video'];

let loaded: readonly ModelInfo[] | undefined;

/** The models we know of, by provider and id. Read on first use; the rows are shared and frozen. */
export function loadCatalogue(): readonly ModelInfo[] {
  loaded ??= Object.freeze(
    Object.entries(rowsByProvider).flatMap(([provider, rows]) =>
      rows.map(row => Object.freeze(toModel(provider, row))),
    ),
  );
  return loaded;
}

function toModel(provider: string, row: Row): ModelInfo {
  return {
    provider,
    id: row.id,
    name: row.name,
    aliases: row.aliases ?? [],
    window: row.window,
    maxOutput: row.maxOutput,
    input: inputKinds.filter(kind => kind === 'text' || row.input?.includes(kind)),
    efforts: efforts.filter(effort => row.efforts?.includes(effort)),
    ...(row.thinkingBudget ? { thinkingBudget: row.thinkingBudget } : {}),
    reasoning: row.reasoning ?? false,
    temperature: row.noTemperature ? 'none' : 'range',
    tools: !row.noTools,
    ...(row.price ? { price: row.price } : {}),
    score: row.score,
    allowCodeGeneration: row.code ?? false,
    status: row.deprecated ? 'deprecated' : 'active',
    ...(row.life ? { life: row.life } : {}),
  };
}
