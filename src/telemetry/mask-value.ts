export interface TextMask {
  /** Masks the secrets within the name of a field. */
  name(text: string): string;
  /** Masks the secrets within a text, or answers what is to stand in its place. */
  text(text: string): unknown;
  /** What stands in the place of bytes. */
  bytes(bytes: Uint8Array): unknown;
  /** Masks a text that is a secret as a whole. */
  whole(text: string): string;
}

/** Names of headers and of fields whose value is a secret, whatever it looks like. */
const secretName =
  /^(?:proxy-)?authorization$|^(?:set-)?cookie$|^(?:x-|x-goog-)?api[-_]?key$|^(?:x-)?(?:access|auth|refresh|id|session|private|bearer)[-_]?token$|^(?:client|app)[-_]?secret$|^(?:private|secret|access)[-_]?key$|^(?:password|passwd|passphrase|secret)$/i;

const deepest = 12;

/** A copy made of plain data: errors with their causes, maps, headers and addresses become records and texts. */
export function maskValue(value: unknown, mask: TextMask): unknown {
  return copy(value, mask, []);
}

function copy(value: unknown, mask: TextMask, above: readonly object[]): unknown {
  switch (typeof value) {
    case 'string':
      return mask.text(value);
    case 'bigint':
      return String(value);
    case 'symbol':
    case 'function':
      return `[${typeof value}]`;
    case 'object':
      return value === null ? null : copyObject(value, mask, above);
    default:
      return value;
  }
}

function copyObject(value: object, mask: TextMask, above: readonly object[]): unknown {
  if (above.includes(value)) return '[circular]';
  if (above.length >= deepest) return '[too deep]';
  const path = [...above, value];
  if (Array.isArray(value)) return value.map(entry => copy(entry, mask, path));
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof URL) return mask.text(value.href);
  if (value instanceof Set) return [...value].map(entry => copy(entry, mask, path));
  if (value instanceof Map || value instanceof Headers) return copyFields([...value.entries()], mask, path);
  if (ArrayBuffer.isView(value)) return mask.bytes(bytesOf(value));
  if (value instanceof Error) return copyFields([...errorFields(value), ...fields(value)], mask, path);
  return copyFields(fields(value), mask, path);
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function copyFields(
  entries: readonly (readonly [unknown, unknown])[],
  mask: TextMask,
  path: readonly object[],
): object {
  const copied = entries.map(([key, value]): [string, unknown] => {
    const name = String(key);
    return [mask.name(name), secretName.test(name) ? hide(value, mask, path) : copy(value, mask, path)];
  });
  return Object.fromEntries(copied);
}

function hide(value: unknown, mask: TextMask, path: readonly object[]): unknown {
  if (typeof value === 'string') return value === '' || isPlaceholder(value) ? value : mask.whole(value);
  return Array.isArray(value) ? value.map(entry => hide(entry, mask, path)) : copy(value, mask, path);
}

function isPlaceholder(text: string): boolean {
  return /^\[masked:\w+:[0-9a-f]{8}\]$/.test(text);
}

/** An error's own words are not enumerable. */
function errorFields(error: Error): [string, unknown][] {
  const { name, message, stack, cause } = error;
  const inner: unknown = error instanceof AggregateError ? error.errors : undefined;
  const all: [string, unknown][] = [
    ['name', name],
    ['message', message],
    ['stack', stack],
    ['cause', cause],
    ['errors', inner],
  ];
  return all.filter(([, value]) => value !== undefined);
}

function fields(value: object): [string, unknown][] {
  return Object.keys(value).map(key => {
    try {
      return [key, Reflect.get(value, key)];
    } catch {
      // A getter that throws must not stop the rest from being told.
      return [key, '[unreadable]'];
    }
  });
}
