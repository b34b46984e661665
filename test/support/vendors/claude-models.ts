/** What the Messages interface makes of a model by its id. */
export interface ClaudeModel {
  /** Takes `thinking: {type: 'enabled', budget_tokens}`. */
  budget: boolean;
  /** Takes `thinking: {type: 'adaptive'}`. */
  adaptive: boolean;
  /** Refuses `thinking: {type: 'disabled'}`. */
  alwaysThinks: boolean;
  /** Sends its thoughts where the request says nothing of `display`. */
  showsThoughts: boolean;
  /** Takes temperature, top_p and top_k while it does not think. */
  sampling: boolean;
  /** Takes temperature and top_p in one request; from Opus 4.1 on one of them alone. */
  bothSamplings: boolean;
  /** The efforts of `output_config`; empty where it takes none. */
  efforts: readonly string[];
  /** Takes `system` messages between the others. */
  systemBetween: boolean;
  /** Takes a conversation that ends with the beginning of its own answer. */
  prefill: boolean;
  maxOutput: number;
  /** Tokens from which on a prefix is cached. */
  cacheFrom: number;
}

const plain = ['low', 'medium', 'high'];
const upToMax = [...plain, 'max'];
const all = [...plain, 'xhigh', 'max'];

const oldest: ClaudeModel = {
  budget: false,
  adaptive: false,
  alwaysThinks: false,
  showsThoughts: true,
  sampling: true,
  bothSamplings: true,
  efforts: [],
  systemBetween: false,
  prefill: true,
  maxOutput: 8_192,
  cacheFrom: 1_024,
};
const budgeted: ClaudeModel = { ...oldest, budget: true, maxOutput: 64_000 };
const adaptive: ClaudeModel = {
  ...budgeted,
  bothSamplings: false,
  adaptive: true,
  efforts: upToMax,
  prefill: false,
  maxOutput: 128_000,
};
const newest: ClaudeModel = {
  ...adaptive,
  budget: false,
  sampling: false,
  efforts: all,
  systemBetween: true,
  showsThoughts: false,
};

/** The first family that fits; an id that is none of these is taken for a newer one. */
const families: readonly [pattern: RegExp, model: ClaudeModel][] = [
  [/claude-3-7/, budgeted],
  [/claude-3-5/, oldest],
  [/claude-(3|2|instant)/, { ...oldest, maxOutput: 4_096 }],
  [/opus-4-8/, newest],
  [/opus-4-7/, { ...newest, systemBetween: false }],
  [/opus-4-6/, { ...adaptive, cacheFrom: 4_096 }],
  [/sonnet-4-6/, adaptive],
  [/opus-4-5/, { ...budgeted, bothSamplings: false, efforts: plain, cacheFrom: 4_096 }],
  [/haiku-4-5/, { ...budgeted, bothSamplings: false, cacheFrom: 4_096 }],
  [/sonnet-4-5/, { ...budgeted, bothSamplings: false }],
  [/opus-4-1/, { ...budgeted, bothSamplings: false, maxOutput: 32_000 }],
  [/sonnet-4/, budgeted],
  [/opus-4/, { ...budgeted, maxOutput: 32_000 }],
  [/sonnet-5(?!-5)/, { ...newest, systemBetween: false }],
  [/(opus|sonnet)-5-5|(fable|mythos)-5/, { ...newest, cacheFrom: 512, alwaysThinks: true }],
  [/opus-5|haiku-5/, { ...newest, cacheFrom: 512 }],
];

export function claudeModel(id: string): ClaudeModel {
  return families.find(([pattern]) => pattern.test(id))?.[1] ?? newest;
}
