/** What the Gemini interface makes of a model by its id. */
export interface GoogleModel {
  /** Takes `thinkingBudget`: 0 where thinking can be switched off, -1 for what the model thinks best, else a number in the range. */
  budget?: { min: number; max: number; off: boolean };
  /** The words of `thinkingLevel`; empty where it takes none. */
  levels: readonly string[];
  /** Takes a `systemInstruction`. */
  instructions: boolean;
  /** Tokens from which on a prefix is cached; none for models without such a cache. */
  cacheFrom: number;
  /** Tokens from which on a cache of one's own can be made. */
  explicitFrom: number;
}

const fromLow = ['low', 'medium', 'high'];
const all = ['minimal', ...fromLow];

const flash25: GoogleModel = {
  budget: { min: 1, max: 24_576, off: true },
  levels: [],
  instructions: true,
  cacheFrom: 2_048,
  explicitFrom: 1_024,
};
const never = Number.POSITIVE_INFINITY;
const plain: GoogleModel = { levels: [], instructions: true, cacheFrom: never, explicitFrom: never };
/** Budgets are still taken for the sake of old programs, but thinking cannot be switched off. */
const newest: GoogleModel = {
  budget: { min: 1, max: 32_768, off: false },
  levels: fromLow,
  instructions: true,
  cacheFrom: 4_096,
  explicitFrom: 4_096,
};

/** The first family that fits; an id that is none of these is taken for a newer one. */
const families: readonly [pattern: RegExp, model: GoogleModel][] = [
  [/^gemma-4/, { ...plain, levels: ['minimal', 'high'] }],
  [/^gemma-/, { ...plain, instructions: false }],
  [/^gemini-(1|2\.0)/, plain],
  [/^gemini-2\.5-flash-lite/, { ...flash25, budget: { min: 512, max: 24_576, off: true } }],
  [/^gemini-2\.5-flash/, flash25],
  [/^gemini-2\.5/, { ...flash25, budget: { min: 128, max: 32_768, off: false }, explicitFrom: 4_096 }],
  [/^gemini-3-pro/, { ...newest, levels: ['low', 'high'] }],
  [/^gemini-3(\.[156])?-flash/, { ...newest, levels: all, explicitFrom: 1_024 }],
  [/^gemini-(flash|flash-lite)-latest|^gemini-robotics-er-2/, { ...newest, levels: all }],
  [/^gemini-4-hydrogen/, { ...newest, levels: [...fromLow, 'xhigh'] }],
];

export function googleModel(id: string): GoogleModel {
  return families.find(([pattern]) => pattern.test(id))?.[1] ?? newest;
}
