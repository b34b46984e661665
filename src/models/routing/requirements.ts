import type { ModelInfo } from '../../core/model.ts';
import { counted } from '../../core/text.ts';
import { freshnessOf } from './freshness.ts';

/** A file's name without the range that may follow it, in lower case. */
const plainName = (path: string): string =>
  path
    .trim()
    .toLowerCase()
    .replace(/:\d+(?:-\d+)?$/, '');

function extensionOf(path: string): string {
  const name = plainName(path).split(/[\\/]/).at(-1) ?? '';
  const dot = name.lastIndexOf('.');
  return dot === -1 ? '' : name.slice(dot + 1);
}

const wordsIn = (text: string): Set<string> => new Set(text.split(' '));

/** What has to be extracted before a model can read it. */
const documents = wordsIn(
  'pdf doc docx docm dotx odt rtf pages xls xlsx xlsm xlsb ods numbers ppt pptx pptm ppsx odp key epub mobi djvu xps tif tiff',
);

const pictures = wordsIn('png jpg jpeg webp gif bmp heic heif');

const sources = wordsIn(
  'ts tsx mts cts js jsx mjs cjs py pyi go rs java kt kts scala c h cc cpp cxx hpp cs fs swift m mm rb php pl lua r jl dart ' +
    'ex exs erl hs clj elm ml vue svelte sql sh bash zsh ps1 css scss less html xml gradle tf proto graphql sol zig nim',
);

const pageWord =
  /scan|receipt|invoice|letter|contract|form\b|page|handwrit|\bocr\b|transcri|document|extract|rechnung|quittung|vertrag|beleg|facture|reçu|contrat|扫描|发票|收据|合同|识别|文字/i;

/** Whether a picture shows text that is to be read, by its name or by what is asked. */
const isPage = (path: string, text: string): boolean =>
  pictures.has(extensionOf(path)) && (pageWord.test(plainName(path)) || pageWord.test(text));

/** The named files that are documents: PDF, office formats, pictures of text. */
export const documentsAmong = (files: readonly string[], text: string): string[] =>
  files.filter(path => documents.has(extensionOf(path)) || isPage(path, text));

/** The named files that are pictures to look at. */
export const picturesAmong = (files: readonly string[], text: string): string[] =>
  files.filter(path => pictures.has(extensionOf(path)) && !isPage(path, text));

/** What a model that was asked for its opinion may say; nothing else is taken from it. */
export const declarableClasses = ['chat', 'search', 'code', 'reasoning'] as const;

export type DeclarableClass = (typeof declarableClasses)[number];

/** What a call is about, as far as the choice of a model goes. */
export type RouteClass = DeclarableClass | 'explicit' | 'vision' | 'long_context' | 'documents' | 'agent';

/** A call as the AI manager sees it. */
export interface TaskProfile {
  tool: string;
  /** What is asked, in the caller's words. */
  text: string;
  /** Files and directories as the caller named them. */
  files: readonly string[];
  images: number;
  /** `use_websearch`; absent: the caller did not say. */
  useWebsearch?: boolean;
  /** Prompt, named files and what is sent of the thread, in o200k tokens. */
  estimatedTokens: number;
  /** The model that the caller named, when it named one. */
  model?: string;
  /** The class that a model told for a text that the rules leave open. */
  told?: DeclarableClass;
}

/** The task, and among what may be chosen. */
export interface ManagerRequest extends TaskProfile {
  /** Models that may be chosen without being named, in the order in which the tool's category has them. */
  models: readonly ModelInfo[];
  searches(model: ModelInfo): boolean;
  /** Providers of which nothing good is to be expected now come last. */
  isUnwell?(provider: string): boolean;
  /** `auto`: questions about now search too; `asked`: only calls that say so; `off`: none. */
  webSearch: 'auto' | 'asked' | 'off';
}

/** What the call needs and likes, before a name becomes a model. */
export interface ModelRequirements {
  /** Of the first rule that fired. */
  class: RouteClass;
  /** The text leaves the class open: a model may be asked, and until then this is the answer. */
  unclear: boolean;
  needs: {
    vision: boolean;
    /** Tokens that must fit, answer included. */
    window: number;
    search: boolean;
  };
  /** Provider ids, the most wanted first; only those that have a model for it. */
  prefers: string[];
  tools: { webSearch: boolean; files: boolean };
  /** How named files reach the model. */
  context: 'inline' | 'provider_files' | 'summarize';
  /** Why, one clause each. */
  reasons: string[];
  /** All rules, in their order, and what each said to the task: where it fired, also why. */
  rules(): { rule: string; fired: boolean; because?: string }[];
}

/** Above this many tokens a prompt is long: it goes where windows are wide and reading is cheap. */
const longFrom = 128_000;

/** What a tool is for, where its name alone says it. The others are for conversation. */
const affinities: readonly (readonly [RouteClass, ReadonlySet<string>])[] = [
  ['agent', wordsIn('agent clink diagnose kimi_chat_with_tools')],
  ['code', wordsIn('analyze codereview precommit debug secaudit refactor testgen docgen tracer')],
  ['reasoning', wordsIn('thinkdeep planner consensus ceo_and_board')],
  ['search', wordsIn('apilookup glm_web_search')],
  ['documents', wordsIn('kimi_upload_and_extract kimi_multi_file_chat kimi_manage_files smart_file_query')],
];

const searchers = ['zhipu', 'google', 'openai', 'anthropic', 'xai', 'moonshot', 'openrouter'];

/** Providers for a class, the most wanted first; none: any will do. */
const wanted: Readonly<Partial<Record<RouteClass, readonly string[]>>> = {
  long_context: ['moonshot', 'google', 'anthropic', 'xai', 'zhipu', 'openai', 'openrouter'],
  documents: ['moonshot', 'google', 'anthropic', 'openai'],
  search: searchers,
  agent: ['zhipu'],
};

/** What the rules have in common; each part is computed once. */
type Facts = ReturnType<typeof factsOf>;

/** In this order; the first that fires names the class, all add what they need. `fires` says why; undefined: it does not. */
const rules: readonly { class: RouteClass; fires(facts: Facts): string | undefined }[] = [
  { class: 'explicit', fires: ({ request }) => request.model && `the call names ${request.model}` },
  {
    class: 'vision',
    fires({ request: { images }, pictures, affinity }) {
      if (images > 0) return counted(images, 'image');
      return pictures.length > 0 && affinity !== 'documents' ? `${pictures[0]} is a picture` : undefined;
    },
  },
  {
    class: 'long_context',
    fires: ({ request: { estimatedTokens } }) =>
      estimatedTokens > longFrom ? `about ${estimatedTokens} tokens, more than ${longFrom}` : undefined,
  },
  {
    class: 'documents',
    fires({ documents: [first, ...more], affinity, request }) {
      if (first !== undefined) return more.length > 0 ? `${more.length + 1} documents` : `${first} is a document`;
      return affinity === 'documents' ? `${request.tool} reads documents` : undefined;
    },
  },
  { class: 'search', fires: facts => facts.search().searchWhy },
  {
    class: 'agent',
    fires: ({ affinity, request }) => (affinity === 'agent' ? `${request.tool} works alone` : undefined),
  },
  { class: 'code', fires: codeWhy },
  {
    class: 'reasoning',
    fires({ affinity, request }) {
      if (affinity === 'reasoning') return `${request.tool} thinks something through`;
      return request.told === 'reasoning' ? 'a model took the question for a hard one' : undefined;
    },
  },
  { class: 'chat', fires: () => 'a plain question' },
];

/** Plans a call by rules alone. Pure. */
export function requirementsOf(request: ManagerRequest): ModelRequirements {
  const facts = factsOf(request);
  const first = rules.find(rule => rule.fires(facts) !== undefined);
  const routeClass = first?.class ?? 'chat';
  const explicit = routeClass === 'explicit';
  const { estimatedTokens } = request;
  const window = explicit ? 0 : estimatedTokens + Math.min(16_000, Math.max(1_024, Math.ceil(estimatedTokens / 4)));
  // A named model is asked whatever the text is about, so that is not looked at.
  const search = (!explicit || request.useWebsearch === true) && facts.search().searchWhy !== undefined;
  const prefers = explicit ? [] : preferences(facts, { routeClass, window, search });
  const files = facts.documents.length > 0 && request.models.some(model => model.provider === 'moonshot');
  return {
    class: routeClass,
    unclear: routeClass === 'chat' && facts.search().openWhy !== undefined,
    needs: { vision: request.images > 0, window, search },
    prefers,
    tools: { webSearch: search, files },
    context: contextOf(facts, { window, files }),
    reasons: [
      `${routeClass}: ${first?.fires(facts) ?? 'nothing else fits'}`,
      ...(search && routeClass !== 'search' ? [`searches the web: ${facts.search().searchWhy}`] : []),
      ...(facts.documents.length > 0 && routeClass !== 'documents'
        ? [`reads documents: ${facts.documents.length}`]
        : []),
      ...(routeClass === 'chat' && facts.search().openWhy !== undefined ? [`unclear: ${facts.search().openWhy}`] : []),
      ...(prefers.length > 0 ? [`prefers ${prefers.join(', ')}`] : []),
    ],
    rules() {
      const all = rules.map(rule => ({ rule: rule.class, because: rule.fires(facts) }));
      return all.map(({ rule, because }) => ({ rule, fired: because !== undefined, because }));
    },
  };
}

function factsOf(request: ManagerRequest) {
  const { tool, text, files } = request;
  const affinity = affinities.find(([, tools]) => tools.has(tool))?.[0];
  let search: ReturnType<typeof searchFacts> | undefined;
  return {
    request,
    affinity,
    documents: documentsAmong(files, text),
    pictures: picturesAmong(files, text),
    sources: files.filter(path => sources.has(extensionOf(path))),
    search: () => (search ??= searchFacts(request, affinity)),
  };
}

/** Why the web is to be searched, when it is, or why it may have to be. */
function searchFacts(
  request: ManagerRequest,
  affinity: RouteClass | undefined,
): { searchWhy?: string; openWhy?: string } {
  const { useWebsearch, webSearch, told, files, text } = request;
  if (webSearch === 'off' || useWebsearch === false) return {};
  if (useWebsearch) return { searchWhy: 'use_websearch' };
  if (webSearch === 'asked') return {};
  if (affinity === 'search') return { searchWhy: `${request.tool} is about what is new` };
  const narrow = affinity === 'code' || affinity === 'agent' || files.length > 0;
  const { verdict, because } = freshnessOf(text, { narrow });
  if (verdict === 'yes') return { searchWhy: `the question ${because}` };
  if (verdict === 'no') return {};
  if (told === 'search') return { searchWhy: 'a model took the question for one about now' };
  return told === undefined ? { openWhy: because } : {};
}

function codeWhy({ affinity, request, sources }: Facts): string | undefined {
  if (affinity === 'code') return `${request.tool} is about code`;
  if (affinity === 'reasoning') return undefined;
  if (request.told === 'code') return 'a model took the question for one about code';
  if (sources.length > 0) return `${sources[0]} is source code`;
  return codeBlock.test(request.text) ? 'the text holds code' : undefined;
}

const codeBlock = /```|^[ \t]+at \S+ \(?.*:\d+:\d+\)?$|^Traceback \(most recent call last\)|^(?:diff --git|@@ -\d+)/m;

/** Providers that have a model for it, in the order of the class; those that are ill come last. */
function preferences(
  facts: Facts,
  { routeClass, window, search }: { routeClass: RouteClass; window: number; search: boolean },
): string[] {
  const { request } = facts;
  // GLM's small and quick models.
  const serves = (model: ModelInfo) =>
    (!search || request.searches(model)) &&
    (routeClass !== 'long_context' || model.window >= window) &&
    (routeClass !== 'chat' || model.provider !== 'zhipu' || /flash/i.test(model.id));
  const able = new Set(request.models.filter(serves).map(({ provider }) => provider));
  // Where nobody searches, the class decides alone.
  const found = able.size > 0 ? able : new Set(request.models.map(({ provider }) => provider));
  const listed = listFor(facts, routeClass, search).filter(provider => found.has(provider));
  const isUnwell = (provider: string) => request.isUnwell?.(provider) ?? false;
  return [...listed.filter(provider => !isUnwell(provider)), ...listed.filter(isUnwell)];
}

function listFor({ request, documents }: Facts, routeClass: RouteClass, search: boolean): readonly string[] {
  if (routeClass === 'chat')
    return [...new Set(['zhipu', ...request.models.slice(0, 1).map(({ provider }) => provider)])];
  if (routeClass === 'vision') return search && documents.length === 0 ? searchers : [];
  return wanted[routeClass] ?? [];
}

function contextOf({ request }: Facts, { window, files }: { window: number; files: boolean }) {
  if (files) return 'provider_files';
  const widest = Math.max(0, ...request.models.map(model => model.window));
  return widest > 0 && window > widest ? 'summarize' : 'inline';
}
