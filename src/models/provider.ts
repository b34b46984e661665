import { BlockList, isIP, isIPv6 } from 'node:net';
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4ProviderTool,
  SharedV4ProviderOptions,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { configError } from '../core/errors.ts';
import { type Effort, efforts, type ModelInfo } from '../core/model.ts';
import type { OptionSpec } from '../core/option.ts';
import type { Clock, SharedState } from '../core/ports.ts';
import type { CallLimits, ModelQuestion, WebSearch } from './ask-model.ts';
import type { UsesIn } from './fees.ts';

/** The reason of a signal that is aborted from the start: `vendorFetch` answers such a question itself, with an event that says nothing. */
export const dryRunReason = new Error('Nothing is asked.');

/**
 * The supported effort nearest to the wanted one, the higher of two that are as near, as DeepSeek and Kimi read `medium`. `none` never
 * stands in for another effort, because that would switch thinking off. Undefined when nothing is wanted or nothing fits.
 */
export function closestEffort(wanted: Effort | undefined, supported: readonly Effort[]): Effort | undefined {
  if (wanted === undefined || supported.includes(wanted)) return wanted;
  const distance = (effort: Effort) => Math.abs(efforts.indexOf(effort) - efforts.indexOf(wanted));
  const upwards = efforts.filter(effort => effort !== 'none' && supported.includes(effort));
  return upwards.toReversed().toSorted((a, b) => distance(a) - distance(b))[0];
}

/** How much of a thinking budget's range an effort uses. */
const budgetShare: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0,
  low: 0.1,
  medium: 0.35,
  high: 0.7,
  xhigh: 0.85,
  max: 1,
};

/** Tokens that an effort stands for at a model that takes a thinking budget. */
export const budgetFor = (effort: Effort, range: { min: number; max: number }): number =>
  Math.round(range.min + (range.max - range.min) * budgetShare[effort]);

/** The base URL of a vendor as it was configured, checked, without the slash at its end. */
export function checkedBaseUrl(value: string, envName: string): string {
  const url = URL.parse(value.trim());
  if (!url || !/^https?:$/.test(url.protocol)) throw refused(envName, 'is no http or https address');
  // fetch refuses such addresses, and they would end up in messages.
  if (url.username !== '' || url.password !== '') throw refused(envName, 'carries a user or password');
  if (url.search !== '' || url.hash !== '') throw refused(envName, 'carries a query or fragment');
  return url.href.replace(/\/+$/, '');
}

const refused = (envName: string, problem: string) =>
  configError(`${envName} ${problem}.`, {
    next: `Set ${envName} to the whole base address, version path included, such as http://127.0.0.1:8000/v1.`,
  });

/** Networks of both families, each as `address/bits`. */
export function networks(list: readonly string[]): BlockList {
  const ranges = new BlockList();
  for (const network of list) {
    const [address = '', bits] = network.split('/');
    ranges.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return ranges;
}

const privateNetworks = [
  ...['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '0.0.0.0/32'],
  ...['::1/128', 'fc00::/7', 'fe80::/10'],
];

/** Whether an address points at this machine or its own network: loopback, private ranges, and names without a public suffix. */
export function isLocalUrl(value: string): boolean {
  const host = URL.parse(value.trim())
    ?.hostname.replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (!host) return false;
  // Most are names, and are asked about at the start: what knows all forms of addresses takes its time to be made.
  const family = /^[\d.]+$|:/.test(host) ? isIP(host) : 0;
  if (family !== 0) return networks(privateNetworks).check(host, family === 6 ? 'ipv6' : 'ipv4');
  return !host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa)$/.test(host);
}

/** Addresses of this very machine, as the proxies' exceptions have them: what goes there takes no other way. */
const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

export function isLoopbackUrl(value: string): boolean {
  const host = URL.parse(value.trim())?.hostname;
  return host !== undefined && loopbackHosts.includes(host);
}

/** A model behind the AI SDK's contract; only `doStream` is used. */
export interface LanguageModel extends LanguageModelV4 {}

/** What a provider gets to connect with: the values of its own options, by their names in `options`. */
export type ProviderSettings = Readonly<Record<string, string | undefined>>;

/** How a call wants to be answered, in our words. */
export interface CallParams {
  /** The model that is asked. */
  model: ModelInfo;
  /** How hard it thinks; absent: as the vendor decides. */
  effort?: Effort;
  /** Tokens that it may think with; absent: none is sent. */
  thinkingBudget?: number;
  /** Most tokens of the answer. */
  maxOutputTokens: number;
  /** Equal for all calls whose prompts share a beginning: the thread's id. */
  cacheKey?: string;
  /** The model may search the web; only given to models that `searches` says yes to. */
  webSearch?: WebSearch;
  /** The call itself, for a provider whose models work where the caller is. */
  about?: Pick<ModelQuestion, 'reqId' | 'tool' | 'root' | 'cli'>;
}

/** A model as the vendor's own listing tells of it; what the listing does not say is left out. */
export type LiveModel = Pick<ModelInfo, 'id'> &
  Partial<Pick<ModelInfo, 'window' | 'maxOutput' | 'input' | 'reasoning' | 'efforts' | 'price'>>;

/** Sizes as they travel, in base64. */
export interface ImageLimits {
  /** Images in one request. */
  max: number;
  /** Of one image. */
  bytes: number;
  /** Of all images of a request together. */
  allBytes: number;
  /** Media types that it takes; absent: PNG, JPEG, GIF and WebP. */
  types?: readonly string[];
}

/** What an account at a vendor has left, in the currency in which the vendor bills it. */
export interface AccountBalance {
  available: number;
  /** The part of it that was given. */
  voucher: number;
  /** Below zero when it is owed. */
  cash: number;
}

/** An open connection to one vendor. Holds no request state; any number of calls may use it at once. */
export interface Connection {
  /** The model behind the AI SDK's contract; only `doStream` is used. */
  languageModel(model: ModelInfo): LanguageModelV4;
  /** What the vendor wants said in its own words for these parameters: effort, thinking, cache key, store. */
  providerOptions(params: CallParams): SharedV4ProviderOptions;
  /** The vendor's own tools for these parameters, run at the vendor: web search. Absent where its words in `providerOptions` do. */
  vendorTools?(params: CallParams): LanguageModelV4ProviderTool[];
  /** Finds in its stream what the vendor charges for in addition to tokens; absent: nothing. */
  usesIn?: UsesIn;
  /** Options that mark the end of a cached stretch on a message part; absent where the vendor wants no marks. */
  cacheMark?: SharedV4ProviderOptions;
  /**
   * Whether a message that has only texts is sent as one string, without marks: many servers of Chat Completions take nothing
   * else. Absent: as a list of texts.
   */
  sendsStrings?(model: ModelInfo): boolean;
  /** `system` where the model takes instructions after the conversation; absent: `user`, because chat templates often refuse them there. */
  tailRole?(model: ModelInfo): 'system' | 'user';
  /** What the vendor takes of images in one request; absent: what nearly all take. */
  imageLimits?(model: ModelInfo): ImageLimits;
  /** `system` where the vendor wants the text of documents as system messages; absent: as the user's. */
  documentRole?: 'system';
  /**
   * Whether thoughts that the vendor did not sign go back to it with the calls that they led to: `required` where it refuses
   * calls without thoughts. Absent: they do not.
   */
  echoesThoughts?: 'wanted' | 'required';
  /** Under which its package keeps signatures and ids in the metadata of parts. Absent: its models' provider, up to a dot. */
  signer?: string;
  /** What is worth a word about its address, for a diagnosis; may ask there. Absent or undefined: nothing. */
  remark?(signal: AbortSignal): Promise<string | undefined>;
  /** The vendor's live list. Absent where there is none. */
  list?(signal: AbortSignal): Promise<LiveModel[] | undefined>;
  /** What the vendor counts as the input tokens of a call, which it does not answer. Absent where it counts for nobody. */
  countTokens?(model: ModelInfo, call: LanguageModelV4CallOptions): Promise<number>;
  /** What is left to be spent there. Absent where the vendor does not tell. Throws an `AppError`. */
  balance?(signal: AbortSignal): Promise<AccountBalance>;
  /** Gives back what it holds at the vendor for a thread that is no more; absent where that is nothing. */
  forget?(thread: string): Promise<void>;
  /** Gives back what it holds at the vendor; absent where that is nothing. Waits a few seconds at the most, and never throws. */
  close?(): Promise<void>;
}

/** What a connection that keeps something at its vendor needs. */
export interface ConnectContext {
  clock: Clock;
  /** Shared with the other processes on the store. */
  state: SharedState;
}

/** What the reference tells of a provider beside its settings. */
export interface ProviderDocs {
  /** Where calls go, as method and address. */
  endpoint: string;
  /** What differs from what one would expect, a sentence each. */
  quirks: readonly string[];
  /** The vendor's documents that this was written from. */
  source: string;
}

/** A vendor's service, or models elsewhere, and how Polylogue connects to it. */
export interface ProviderDefinition {
  /** Lower case; stands before the colon in `provider:model` and in replies as `provider_used`. */
  id: string;
  /** Short forms of the id that callers may type. */
  names: readonly string[];
  /** For people. */
  title: string;
  /** Its settings, by the name under which `connect` gets them. */
  options: Readonly<Record<string, OptionSpec>>;
  /** Whether the settings are enough to try. Placeholders were dropped before. */
  configured(settings: ProviderSettings): boolean;
  /** Loads the vendor's package and connects; called once, on first use. Without `context` nothing is kept at the vendor. */
  connect(settings: ProviderSettings, context?: ConnectContext): Promise<Connection>;
  /** Models that the settings bring along (a custom endpoint's, the offline ones), `known` being the others: those of the catalogue. */
  models?(settings: ProviderSettings, known: readonly ModelInfo[]): ModelInfo[];
  /** Whether a model of it can search the web alone; absent: none can. */
  searches?(model: ModelInfo, settings: ProviderSettings): boolean;
  /** For the reference. */
  docs?: ProviderDocs;
  /** Serves others' models under their names: a listed one that nothing is known of is like the maker's own. */
  servesOthers?: boolean;
  /** Has no list of its models to ask for. */
  unlisted?: boolean;
  /** What its listing names is never all that it serves: aggregators, deployments, endpoints of one's own. */
  openEnded?: boolean;
  /** Tokens taken for models whose window neither the settings' entry nor the listing tells; `assumed`: nobody set them. */
  fallbackWindow?(settings: ProviderSettings): { tokens: number; assumed: boolean };
  /** Only what its live list names exists there: the catalogue's other models of this provider are left out. */
  listDecides?: boolean;
  /** It is asked to keep prompts: in one call one may be paid to be kept, for as long as that costs most, and to be read. */
  cachesApart?(settings: ProviderSettings): boolean;
  /** It takes documents: all its current models do, or it gives the text of what was uploaded. */
  readsDocuments?: boolean;
  /** On this machine or network: its time limits are wider. */
  local?(settings: ProviderSettings): boolean;
  /**
   * Its models run on this very machine, not merely behind an address of it: they are shown the secrets that others see masked.
   * Absent: nobody can tell.
   */
  runsHere?(settings: ProviderSettings): boolean;
  /** Chosen only by name, never automatically. */
  onlyByName?: boolean;
  /** Its models are meant only where its id stands before the colon: their names are other things' names too. */
  onlyByPrefix?: boolean;
  /** Ids of its models that are here now, for a provider whose models come and go with the machine; absent: all of them. */
  present?(): Promise<ReadonlySet<string>>;
  /** What makes it usable, where no setting does: `install …`. */
  setUp?: string;
  /** Time limits of its own, in place of those of all models. */
  limits?(model: ModelInfo): CallLimits;
}

/** Returns `definition`, typed; a provider is one file that exports one of these. */
export function defineProvider<Definition extends ProviderDefinition>(definition: Definition): Definition {
  return definition;
}

/** Assumed of a model of which nothing but its name is known; small enough to be safe. */
export const assumed = { window: 32_768, maxOutput: 8_192, score: 5 };

/** A model of which little is known: what is not said of it here, it can't do. */
export const plainModel = (
  facts: Pick<ModelInfo, 'provider' | 'id' | 'window' | 'maxOutput' | 'score'> & Partial<ModelInfo>,
): ModelInfo => ({
  name: facts.id,
  aliases: [],
  input: ['text'],
  efforts: [],
  reasoning: false,
  temperature: 'range',
  tools: false,
  allowCodeGeneration: false,
  status: 'active',
  ...facts,
});

/** One setting of a provider: a text, unless `more` says otherwise. The first name in `env` is canonical. */
export function setting(env: readonly string[], doc: string, more: Partial<OptionSpec> = {}): OptionSpec {
  return { env, type: 'string', doc, group: 'Providers', ...more };
}

export const keySetting = (env: readonly string[], doc: string): OptionSpec => setting(env, doc, { secret: true });

/** An address that keys are sent to: only the operator may set it. */
export const addressSetting = (env: readonly string[], doc: string, more: Partial<OptionSpec> = {}): OptionSpec =>
  setting(env, doc, { type: 'url', operatorOnly: true, ...more });

/** Where a vendor is asked, and as whom. */
export interface VendorEndpoint {
  /** Id of the provider, for errors. */
  provider: string;
  /** Checked; without a slash at its end. */
  baseUrl: string;
  /** What tells who asks, and whatever else goes with each request. */
  headers: Readonly<Record<string, string>>;
  /** Environment variable of the key, for advice. */
  keyName: string;
  /** Epoch milliseconds, for waits that a vendor gives as a date. */
  now(): number;
}

/** What a vendor is connected with. */
export interface VendorAccess extends VendorEndpoint {
  apiKey: string;
  settings: ProviderSettings;
  context: ConnectContext | undefined;
}

/** Variables of a setting. */
type Variables = readonly [canonical: string, ...others: string[]];

/** A vendor that is asked with one key, at its own address or another one that speaks like it. */
interface KeyedProvider extends Omit<ProviderDefinition, 'options' | 'configured' | 'connect'> {
  key: readonly [env: Variables, doc: string];
  address: readonly [env: Variables, doc?: string];
  /** The vendor's own. */
  baseUrl: string;
  /** Settings beside these two. */
  options?: ProviderDefinition['options'];
  /** As in `VendorEndpoint`; absent: the key as a bearer token. */
  headers?(settings: ProviderSettings): VendorEndpoint['headers'];
  connect(access: VendorAccess): Promise<Connection>;
}

/** Returns the whole provider. Its package always gets key and address: what is left out, it would take from the environment. */
export function keyedProvider<Vendor extends KeyedProvider>(vendor: Vendor) {
  const { id: provider, title, key, baseUrl: ownBaseUrl } = vendor;
  const usual = `Whole base address, version path included, of a server that speaks like ${title}; unset: ${title} itself.`;
  const [addressEnv, addressDoc = usual] = vendor.address;
  const bearer = ({ apiKey = '' }: ProviderSettings) => ({ authorization: `Bearer ${apiKey}` });
  /** Where it is asked, for answers as for all else. */
  const endpoint = (settings: ProviderSettings, now: VendorEndpoint['now']): VendorEndpoint => ({
    provider,
    baseUrl: checkedBaseUrl(settings.baseUrl ?? ownBaseUrl, addressEnv[0]),
    headers: (vendor.headers ?? bearer)(settings),
    keyName: key[0][0],
    now,
  });
  return {
    ...vendor,
    options: { apiKey: keySetting(...key), baseUrl: addressSetting(addressEnv, addressDoc), ...vendor.options },
    configured: (settings: ProviderSettings) => settings.apiKey !== undefined,
    endpoint,
    async connect(settings: ProviderSettings, context?: ConnectContext) {
      const { apiKey = '' } = settings;
      // A wait that a vendor asks for as a date is not waited for.
      return vendor.connect({ apiKey, ...endpoint(settings, () => 0), settings, context });
    },
  };
}

/** A file as a prompt shows it. */
export interface ShownFile {
  path: string;
  form: 'full' | 'range' | 'diff' | 'deleted' | 'unchanged';
  /** Lines between its markers; 0 where nothing is shown. */
  lines: number;
}

/** `end` is what stands before the path in the line that ends what is shown; markers without it stand alone. */
const markers: readonly { form: ShownFile['form']; pattern: RegExp }[] = [
  { form: 'range', pattern: /^--- BEGIN (?<end>FILE|DOCUMENT): (?<path>.+) \(lines \d+-\d+ of \d+\) ---$/ },
  { form: 'full', pattern: /^--- BEGIN (?<end>FILE|DOCUMENT): (?<path>.+) \(\d+ lines?\) ---$/ },
  { form: 'diff', pattern: /^--- BEGIN (?<end>DIFF): (?<path>.+) ---$/ },
  { form: 'deleted', pattern: /^--- FILE DELETED: (?<path>.+) ---$/ },
  { form: 'unchanged', pattern: /^--- FILE UNCHANGED: (?<path>.+) ---$/ },
];

/** The files that a text shows, in order. Markers inside of a shown file belong to that file. */
export function shownFiles(text: string): ShownFile[] {
  const found: ShownFile[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const marker = line.startsWith('--- ') && markers.find(({ pattern }) => pattern.test(line));
    if (!marker) continue;
    const { path = '', end } = marker.pattern.exec(line)?.groups ?? {};
    const close = end === undefined ? -1 : lines.indexOf(`--- END ${end}: ${path} ---`, at + 1);
    found.push({ path, form: marker.form, lines: close < 0 ? 0 : close - at - 1 });
    if (close >= 0) at = close;
  }
  return found;
}

/** Warnings for what a program of the AI SDK set and a model of our own does not take. */
export function notTaken({ responseFormat, stopSequences, seed, toolChoice }: LanguageModelV4CallOptions) {
  const json = responseFormat?.type === 'json' || undefined;
  const set = { responseFormat: json, stopSequences, seed, toolChoice: forcedChoice(toolChoice) };
  const features = Object.entries(set).flatMap(([feature, value]) => (value === undefined ? [] : [feature]));
  return features.map((feature): SharedV4Warning => ({ type: 'unsupported', feature }));
}

/** A choice that has the model call a tool, whether it likes to or not. */
export const forcedChoice = (choice: LanguageModelV4CallOptions['toolChoice']) =>
  choice?.type === 'required' || choice?.type === 'tool' ? choice : undefined;
