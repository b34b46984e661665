import { z } from 'zod';
import { isRecord, recordsIn } from '../../core/json.ts';
import { efforts, type InputKind, type ModelInfo } from '../../core/model.ts';
import { assumed, plainModel } from '../provider.ts';
import { isDated, sameModel } from '../routing/names.ts';
import { strangerScore } from '../routing/roster.ts';

/** What is written down, or served by a machine at hand, is there to be chosen. */
export const atHand = { ...assumed, score: 10 };

/** A model that is there after all: its vendor serves it longer than it announced, or the operator has it from elsewhere. */
export const revived = (model: ModelInfo): ModelInfo =>
  model.status === 'retired' ? { ...model, status: 'deprecated' } : model;

const count = z.int().positive();

/** One model in the form that PAL's files have. Made for those who have such a file. */
const entrySchema = () =>
  z.looseObject({
    model_name: z.string().trim().min(1).max(200),
    friendly_name: z.string().optional(),
    aliases: z
      .union([z.array(z.string()), z.string().transform(text => text.split(','))])
      .transform(names => names.map(name => name.trim().toLowerCase()).filter(name => name !== ''))
      .optional(),
    intelligence_score: z.int().min(1).max(20).optional(),
    description: z.string().optional(),
    context_window: count.optional(),
    max_output_tokens: count.optional(),
    max_thinking_tokens: z.int().min(0).optional(),
    supports_extended_thinking: z.boolean().optional(),
    supports_function_calling: z.boolean().optional(),
    supports_images: z.boolean().optional(),
    supports_temperature: z.boolean().optional(),
    temperature_constraint: z.enum(['fixed', 'range', 'discrete']).optional(),
    allow_code_generation: z.boolean().optional(),
    default_reasoning_effort: z.enum(efforts).optional(),
    /** What Azure serves the model as. */
    deployment: z
      .string()
      .trim()
      .min(1)
      .max(200)
      .regex(/^[^,=]*$/, 'holds a comma or an equals sign')
      .optional(),
    /** Marks those of the custom endpoint in a file that has OpenRouter's too. */
    is_custom: z.boolean().optional(),
    // Part of the form, but nothing here depends on them.
    supports_system_prompts: z.boolean().optional(),
    supports_streaming: z.boolean().optional(),
    supports_json_mode: z.boolean().optional(),
    use_openai_response_api: z.boolean().optional(),
    max_image_size_mb: z.number().optional(),
  });

type Entry = z.infer<ReturnType<typeof entrySchema>>;

/** Without what an entry leaves open, such as sizes of 0, and with a deployment under its one name. */
function filled({ deployment_name: name, ...rest }: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries({ ...rest, deployment: rest.deployment ?? name });
  return Object.fromEntries(members.filter(([key, it]) => it != null && (it !== 0 || !/context|output/.test(key))));
}

/**
 * Lays the operator's own entries over the models of one provider: members that an entry has replace ours, unknown names
 * are added, an alias moves to the entry that claims it. `file` is the parsed file, `{ models: […] }` or the list alone.
 * `warnings`: one sentence for each entry that was left out or not understood whole.
 */
export function overlay(models: readonly ModelInfo[], provider: string, file: unknown) {
  const list = isRecord(file) ? file.models : file;
  if (!Array.isArray(list)) {
    const warning = `The models file for ${provider} has no list "models"; it was left out.`;
    return { models: [...models], warnings: [warning] };
  }
  const schema = entrySchema();
  const warnings: string[] = [];
  const claimed = new Map<string, string>();
  let merged = [...models];
  const isMarked = (raw: unknown) => isRecord(raw) && raw.is_custom === true;
  const onlyMarked = provider === 'custom' && list.some(isMarked);
  for (const [index, raw] of list.entries()) {
    if (onlyMarked && !isMarked(raw)) continue;
    const where = `Model ${index + 1} in the models file for ${provider}`;
    const parsed = schema.safeParse(isRecord(raw) ? filled(raw) : raw);
    const problem = parsed.success ? nameProblem(idOf(parsed.data), claimed) : firstIssue(parsed.error);
    if (!parsed.success || problem !== undefined) {
      warnings.push(`${where} was left out: ${problem}.`);
      continue;
    }
    const strange = Object.keys(parsed.data).filter(key => !Object.hasOwn(schema.shape, key) && !key.startsWith('_'));
    if (strange.length > 0) warnings.push(`${where} has members that mean nothing here: ${strange.join(', ')}.`);
    const warn = (problem: string) => warnings.push(`${where} goes without ${problem}.`);
    const aliases = usableAliases({ ...parsed.data, provider }, merged, claimed, warn);
    const entry = { ...parsed.data, model_name: idOf(parsed.data), aliases };
    for (const alias of [...(aliases ?? []), entry.model_name.toLowerCase()]) claimed.set(alias, entry.model_name);
    merged = withEntry(merged, provider, entry);
  }
  return { models: merged, warnings };
}

function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return 'it is malformed';
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message;
}

/** What the provider is asked for. */
const idOf = ({ deployment, model_name: name }: Pick<Entry, 'deployment' | 'model_name'>): string => deployment ?? name;

function nameProblem(id: string, claimed: Map<string, string>): string | undefined {
  if (id.toLowerCase() === 'auto') return '"auto" is not a model name';
  return claimed.has(id.toLowerCase()) ? `"${id}" is taken by an earlier entry` : undefined;
}

/** A name can mean one model only: what another entry claimed, or another model's id, is no alias. A deployment has its model's name. */
function usableAliases(
  entry: Entry & { provider: string },
  models: readonly ModelInfo[],
  claimed: Map<string, string>,
  warn: (problem: string) => void,
) {
  const name = entry.model_name.toLowerCase();
  const problemOf = (alias: string) => {
    if (alias === 'auto') return 'is not a model name';
    if (claimed.has(alias)) return `is taken by "${claimed.get(alias)}"`;
    const owner = models.find(({ id }) => id.toLowerCase() === alias);
    if (!owner || alias === name || sameModel(owner, { id: name })) return undefined;
    const isRelease = owner.provider !== entry.provider && isDated(owner, name);
    return isRelease ? undefined : `is the id of a model of ${owner.provider}`;
  };
  // Also the name of its model, where no other has that for an alias.
  const isFree = !claimed.has(name) && !models.some(({ aliases }) => aliases.includes(name));
  const named = entry.deployment !== undefined && isFree ? [...(entry.aliases ?? []), name] : entry.aliases;
  return named?.filter(alias => {
    if (alias === idOf(entry).toLowerCase()) return false;
    const problem = problemOf(alias);
    if (problem !== undefined) warn(`the alias "${alias}", which ${problem}`);
    return problem === undefined;
  });
}

function withEntry(models: readonly ModelInfo[], provider: string, entry: Entry): ModelInfo[] {
  const name = entry.model_name.toLowerCase();
  const taken = new Set([...(entry.aliases ?? []), name]);
  const before = models.find(model => model.provider === provider && model.id.toLowerCase() === name);
  const row = merge(before ?? plainModel({ ...atHand, provider, id: entry.model_name }), entry);
  const freed = models.map(model => {
    if (model === before) return row;
    if (!model.aliases.some(alias => taken.has(alias))) return model;
    return { ...model, aliases: model.aliases.filter(alias => !taken.has(alias)) };
  });
  return before ? freed : [...freed, row];
}

function merge(base: ModelInfo, entry: Entry): ModelInfo {
  const reasoning =
    entry.supports_extended_thinking ?? (base.reasoning || entry.default_reasoning_effort !== undefined);
  const window = entry.context_window ?? base.window;
  return {
    ...revived(base),
    name: entry.friendly_name ?? base.name,
    aliases: entry.aliases ? [...new Set(entry.aliases)] : base.aliases,
    window,
    ...(entry.context_window === undefined ? {} : { windowAssumed: false }),
    maxOutput: Math.min(entry.max_output_tokens ?? base.maxOutput, window),
    input: inputOf(base, entry),
    ...thinkingOf(base, entry, reasoning),
    usualEffort: entry.default_reasoning_effort ?? base.usualEffort,
    reasoning,
    temperature: temperatureOf(base, entry),
    tools: entry.supports_function_calling ?? base.tools,
    // What the operator writes down is there to be chosen.
    score: entry.intelligence_score ?? (base.score === strangerScore ? atHand.score : base.score),
    allowCodeGeneration: entry.allow_code_generation ?? base.allowCodeGeneration,
  };
}

function inputOf(base: ModelInfo, { supports_images: images }: Entry): readonly InputKind[] {
  if (images === undefined || images === base.input.includes('image')) return base.input;
  return images ? [...base.input, 'image'] : base.input.filter(kind => kind !== 'image');
}

/** A default effort tells that the model takes efforts; which ones, only the usual three are sure. */
function thinkingOf(base: ModelInfo, entry: Entry, reasoning: boolean): Pick<ModelInfo, 'efforts' | 'thinkingBudget'> {
  if (!reasoning) return { efforts: [], thinkingBudget: undefined };
  if (entry.max_thinking_tokens) {
    const max = entry.max_thinking_tokens;
    return { efforts: [], thinkingBudget: { min: Math.min(base.thinkingBudget?.min ?? 0, max), max } };
  }
  const reported = entry.default_reasoning_effort;
  if (reported === undefined || base.efforts.includes(reported))
    return { efforts: base.efforts, thinkingBudget: base.thinkingBudget };
  const usual = base.efforts.length > 0 ? base.efforts : (['low', 'medium', 'high'] as const);
  return {
    efforts: efforts.filter(effort => effort === reported || usual.some(word => word === effort)),
    thinkingBudget: undefined,
  };
}

/** A fixed temperature is one that is not sent. */
function temperatureOf(base: ModelInfo, entry: Entry): ModelInfo['temperature'] {
  if (entry.supports_temperature === false || entry.temperature_constraint === 'fixed') return 'none';
  return entry.supports_temperature || entry.temperature_constraint ? 'range' : base.temperature;
}

/** A file in which the operator says what models there are, or what is different about them. */
export interface ModelsFile {
  /** The provider whose models it lists; absent: it has a list for each provider, under the provider's id. */
  provider?: string;
  /** As parsed. */
  document: unknown;
}

/** The deployments that the files name for Azure, each as `name=model`. */
export const deploymentsIn = (files: readonly ModelsFile[]): string[] =>
  files
    .flatMap(listsOf)
    .flatMap(([provider, list]) => (provider === 'azure' ? recordsIn(isRecord(list) ? list.models : list) : []))
    .map(filled)
    .flatMap(({ deployment, model_name: model }) =>
      typeof deployment === 'string' && /^[^,=]+$/.test(deployment) && typeof model === 'string'
        ? [`${deployment}=${model}`]
        : [],
    );

/** Lays the operator's files over the models, in order; later ones win. */
export function overlayFiles(models: readonly ModelInfo[], files: readonly ModelsFile[], providers: readonly string[]) {
  const warnings: string[] = [];
  let laid = [...models];
  for (const [provider, list] of files.flatMap(listsOf)) {
    if (!providers.includes(provider)) {
      warnings.push(`The models file names the provider "${provider}", which there is not; its models were left out.`);
      continue;
    }
    const next = overlay(laid, provider, list);
    laid = next.models;
    warnings.push(...next.warnings);
  }
  return { models: laid, warnings };
}

function listsOf({ provider, document }: ModelsFile): [provider: string, list: unknown][] {
  if (provider !== undefined) return [[provider, document]];
  if (!isRecord(document)) return [];
  return Object.entries(document).filter(([name]) => !name.startsWith('_'));
}
