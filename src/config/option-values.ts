import { isRecord } from '../core/json.ts';
import type { OptionSpec, OptionType } from '../core/option.ts';

export type OptionTable = Readonly<Record<string, OptionSpec>>;

/** The product's own options stand under `app`, a provider's under its id. */
export interface OptionTables {
  readonly app: OptionTable;
  readonly [id: string]: OptionTable;
}

export type OptionValue = string | number | boolean | readonly string[];

type WordOf<Spec> = Spec extends { choices: readonly (infer Word extends string)[] } ? Word : string;

type ValueOf<Type extends OptionType, Word extends string> = Type extends 'number'
  ? number
  : Type extends 'boolean'
    ? boolean
    : Type extends 'list' | 'paths'
      ? readonly Word[]
      : Word;

/** What a table's options are worth: always a value where there is a default, undefined where nobody set one. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table]:
    | ValueOf<Table[Name]['type'], WordOf<Table[Name]>>
    | (Table[Name] extends { default: unknown } ? never : undefined);
};

export type TableValues<Tables extends OptionTables> = { readonly [Id in keyof Tables]: OptionValues<Tables[Id]> };

/** Proves that the values have the types that their tables promise. */
export function areValuesOf<Tables extends OptionTables>(
  tables: Tables,
  values: unknown,
): values is TableValues<Tables> {
  return isRecord(values) && Object.entries(tables).every(([id, table]) => fitTable(table, values[id]));
}

function fitTable(table: OptionTable, values: unknown): boolean {
  return isRecord(values) && Object.entries(table).every(([name, spec]) => fits(spec, values[name]));
}

function fits(spec: OptionSpec, value: unknown): boolean {
  if (value === undefined) return spec.default === undefined;
  switch (spec.type) {
    case 'number':
    case 'boolean':
      return typeof value === spec.type;
    case 'list':
    case 'paths':
      return Array.isArray(value) && value.every(word => isWord(spec, word));
    case 'string':
    case 'path':
    case 'url':
      return isWord(spec, value);
  }
}

function isWord(spec: OptionSpec, value: unknown): boolean {
  return typeof value === 'string' && (spec.choices === undefined || spec.choices.includes(value));
}
