import { isRecord } from '../../../src/core/json.ts';

/** The types that vendors' parameters have, in the words of their own messages. */
export type FieldType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'strings' | 'any';

/** Each allowed field, with the types that it takes. */
export type FieldTable = Readonly<Record<string, readonly FieldType[]>>;

export type FieldFault =
  | { kind: 'unknown'; field: string }
  | { kind: 'type'; field: string; expected: readonly FieldType[]; value: unknown };

/** The first field that the table does not know or that has another type. Null counts as absent where `nullable` is set. */
export function firstFieldFault(
  body: Record<string, unknown>,
  table: FieldTable,
  nullable: boolean,
): FieldFault | undefined {
  for (const [field, value] of Object.entries(body)) {
    const expected = Object.hasOwn(table, field) ? table[field] : undefined;
    if (!expected) return { kind: 'unknown', field };
    if (nullable && value === null) continue;
    if (!expected.some(type => isOfType(value, type))) return { kind: 'type', field, expected, value };
  }
  return undefined;
}

function isOfType(value: unknown, type: FieldType): boolean {
  switch (type) {
    case 'any':
      return true;
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    case 'strings':
      return Array.isArray(value) && value.every(item => typeof item === 'string');
    default:
      return typeof value === type;
  }
}
