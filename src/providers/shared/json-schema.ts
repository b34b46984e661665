import type { JSONSchema7, LanguageModelV4 } from '@ai-sdk/provider';
import { isRecord, recordIn, textIn, textsIn } from '../../core/json.ts';
import { adjustedModel, type CallOptions } from './stream-transforms.ts';

/** What strict modes refuse anywhere in a schema. */
const refused =
  /^(?:allOf|oneOf|not|if|then|else|default|uniqueItems|contains|patternProperties|propertyNames|dependent\w+|unevaluated\w+)$/;

/** The formats that strict modes know, and what their regular expressions do not. */
const knownFormat = /^(?:date-time|time|date|duration|email|hostname|ipv4|ipv6|uuid)$/;
const lookaround = /\(\?<?[=!]/;

/** Where schemas stand in a schema: as its value, as a list of them, or by name. */
const nested = /^(?:items|prefixItems|anyOf)$/;
const byName = /^(?:properties|\$defs|definitions)$/;

/** Whether vendors take a schema as a strict one: each object has all of its properties and no others, and no word is unknown. */
function fitsStrictMode(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(fitsStrictMode);
  if (!isRecord(schema)) return true;
  const { type, properties, required, additionalProperties } = schema;
  const isObject = properties !== undefined || [type].flat().includes('object');
  const isClosed = Object.keys(recordIn(properties)).every(name => textsIn(required).includes(name));
  if (isObject && (additionalProperties !== false || !isClosed)) return false;
  if ('$ref' in schema && Object.keys(schema).length > 1) return false;
  if ('format' in schema && !knownFormat.test(textIn(schema.format))) return false;
  if (lookaround.test(textIn(schema.pattern))) return false;
  return Object.entries(schema).every(([word, value]) => {
    if (byName.test(word)) return Object.values(recordIn(value)).every(fitsStrictMode);
    return !refused.test(word) && (!nested.test(word) || fitsStrictMode(value));
  });
}

const schemaOf = ({ responseFormat }: CallOptions): JSONSchema7 | undefined =>
  responseFormat?.type === 'json' ? responseFormat.schema : undefined;

/** Whether a call has no schema that a strict mode would refuse. */
export const isStrict = (call: CallOptions): boolean => fitsStrictMode(schemaOf(call));

/** The same model, asked for what a schema says as well as it can where a strict mode would refuse the schema. `name`: of its options. */
export const withLooseSchemas = (model: LanguageModelV4, name: string): LanguageModelV4 =>
  adjustedModel(model, options => {
    if (isStrict(options)) return options;
    const own = { ...options.providerOptions?.[name], strictJsonSchema: false };
    return { ...options, providerOptions: { ...options.providerOptions, [name]: own } };
  });

/** The same model, told in words what its JSON is to be: its vendor has a parameter for JSON, but none for a schema. */
export const withSchemaInPrompt = (model: LanguageModelV4): LanguageModelV4 =>
  adjustedModel(model, options => {
    const schema = schemaOf(options);
    if (!schema) return options;
    const [first, ...rest] = options.prompt;
    const told = `Answer with one JSON object that fits this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`;
    const prompt: CallOptions['prompt'] =
      first?.role === 'system'
        ? [{ ...first, content: `${first.content}\n\n${told}` }, ...rest]
        : [{ role: 'system', content: told }, ...options.prompt];
    return { ...options, prompt, responseFormat: { type: 'json' } };
  });
