import type { ModelInfo } from '../src/core/model.ts';

/** Aliases that follow the newest of a family: by the numbers that the pattern catches, the highest wins. */
const families: readonly (readonly [provider: string, pattern: RegExp, aliases: readonly string[]])[] = [
  ['anthropic', /^claude-opus-(\d+)(?:-(\d{1,2}))?$/, ['opus', 'claude-opus']],
  ['anthropic', /^claude-sonnet-(\d+)(?:-(\d{1,2}))?$/, ['sonnet', 'claude-sonnet', 'claude']],
  ['anthropic', /^claude-haiku-(\d+)(?:-(\d{1,2}))?$/, ['haiku', 'claude-haiku']],
  ['anthropic', /^claude-fable-(\d+)(?:-(\d{1,2}))?$/, ['fable', 'claude-fable']],
  ['google', /^gemini-(\d+)(?:\.(\d+))?-flash(?:-preview)?$/, ['flash', 'gemini-flash']],
  ['google', /^gemini-(\d+)(?:\.(\d+))?-flash-lite$/, ['flashlite', 'flash-lite', 'lite']],
  ['google', /^gemini-(\d+)(?:\.(\d+))?-pro(?:-preview)?$/, ['pro', 'gemini-pro']],
  ['google', /^gemini-(\d+)(?:\.(\d+))?-argon$/, ['argon', 'gemini']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-sol$/, ['gpt', 'sol', 'gpt-sol']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-terra$/, ['terra', 'gpt-terra']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-luna$/, ['luna', 'gpt-luna']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-astra$/, ['astra', 'gpt-astra']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-mini$/, ['mini', 'gpt-mini']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-nano$/, ['nano', 'gpt-nano']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-pro$/, ['gpt-pro']],
  ['openai', /^gpt-(\d+)(?:\.(\d+))?-codex$/, ['codex', 'gpt-codex']],
  ['xai', /^grok-(\d+)(?:\.(\d+))?$/, ['grok']],
  ['moonshot', /^kimi-k(\d+)(?:\.(\d+))?(?:-pro)?$/, ['kimi']],
  ['zhipu', /^glm-(\d+)(?:\.(\d+))?$/, ['glm']],
  ['zhipu', /^glm-(\d+)(?:\.(\d+))?-flash$/, ['glm-flash', 'glmflash']],
  ['zhipu', /^glm-(\d+)(?:\.(\d+))?v(?:-turbo)?$/, ['glm-vision', 'glmv']],
  ['deepseek', /^deepseek-v(\d+)(?:\.(\d+))?-pro$/, ['deepseek', 'deepseek-pro']],
  ['minimax', /^MiniMax-M(\d+)(?:\.(\d+))?$/, ['minimax']],
];

/** Aliases of one certain model. */
const fixed: readonly (readonly [provider: string, id: string, aliases: readonly string[]])[] = [
  ['google', 'gemini-2.0-flash', ['flash2', 'flash-2.0']],
  ['google', 'gemini-2.5-flash', ['flash2.5', 'flash-2.5']],
  ['google', 'gemini-2.5-pro', ['pro2.5', 'pro-2.5']],
  ['google', 'gemini-3-flash-preview', ['flash3', 'gemini-3-flash']],
  // The vendor shut down the preview of 3 and answers its name with this one.
  ['google', 'gemini-3.1-pro-preview', ['gemini-3.1-pro', 'gemini3', 'gemini-3-pro']],
  ['xai', 'grok-3-fast', ['grok3fast', 'grokfast', 'grok-fast']],
  ['xai', 'grok-4-1-fast-reasoning', ['grok-4-1-fast', 'grok-4-1-fast-reasoning-latest']],
  ['xai', 'grok-4-fast-reasoning', ['grok-4-fast', 'grok-4-fast-reasoning-latest', 'grok4fast']],
  ['xai', 'grok-code-fast-1', ['grok-code-fast', 'grokcodefast']],
  ['openai', 'gpt-5.1', ['5.1']],
  ['openai', 'gpt-5.1-codex', ['codex-5.1']],
  ['openai', 'gpt-5.1-codex-mini', ['codex-mini']],
  ['openai', 'gpt-5.2', ['5.2']],
  ['anthropic', 'claude-3-5-haiku-20241022', ['claude-3.5-haiku', 'haiku-3.5']],
  ['anthropic', 'claude-3-5-sonnet-20241022', ['claude-3.5-sonnet', 'sonnet-3.5']],
  ['anthropic', 'claude-3-7-sonnet-20250219', ['claude-3.7-sonnet', 'sonnet-3.7']],
  ['deepseek', 'deepseek-chat', ['ds-chat']],
  ['deepseek', 'deepseek-reasoner', ['r1', 'reasoner']],
  ['deepseek', 'deepseek-coder', ['ds-coder']],
  ['ollama', 'llama3.2', ['local-llama', 'ollama-llama']],
  // The dated previews of K2 are gone; the family goes on.
  ['moonshot', 'kimi-k2.6', ['kimi-k2']],
  ['moonshot', 'kimi-k3.1-pro', ['kimi-thinking']],
  ['moonshot', 'moonshot-v1-128k', ['moonshot-128k']],
  ['moonshot', 'moonshot-v1-32k', ['moonshot-32k']],
  ['moonshot', 'moonshot-v1-8k', ['moonshot-8k']],
  ['zhipu', 'glm-4.5-air', ['glm-air', 'glmair']],
  ['openrouter', 'mistralai/mistral-large-4-0', ['mistral']],
  ['openrouter', 'meta-llama/llama-3.3-70b-instruct', ['llama', 'llama-70b']],
  ['openrouter', 'mistralai/codestral-2508', ['codestral']],
  ['openrouter', 'mistralai/devstral-2512', ['devstral']],
];

/** Vendors whose names people write without hyphens: gpt5, o3mini, grok4, glm4.5. */
const squashed = new Set(['openai', 'xai', 'zhipu']);
const longestSquashed = 10;

/** Gives every alias to one model. An alias that names nothing, or two things, is a mistake in the tables above. */
export function assignAliases(models: readonly ModelInfo[]): ModelInfo[] {
  const ids = new Set(models.map(model => model.id.toLowerCase()));
  const owners = new Map<string, string>();
  const give = (alias: string, model: ModelInfo) => {
    if (ids.has(alias)) return;
    const owner = owners.get(alias);
    const self = `${model.provider}/${model.id}`;
    if (owner !== undefined && owner !== self) throw new Error(`alias ${alias} of ${self} belongs to ${owner}`);
    owners.set(alias, self);
  };
  for (const [provider, pattern, aliases] of families) {
    const model = newest(models, provider, pattern);
    for (const alias of aliases) give(alias, model);
  }
  for (const [provider, id, aliases] of fixed) {
    const model = models.find(candidate => candidate.provider === provider && candidate.id === id);
    if (!model) throw new Error(`no ${provider}/${id} to give ${aliases.join(', ')} to`);
    for (const alias of aliases) give(alias, model);
  }
  for (const model of models) for (const alias of spellings(model)) give(alias, model);
  return models.map(model => ({
    ...model,
    aliases: [...owners].filter(([, self]) => self === `${model.provider}/${model.id}`).map(([alias]) => alias),
  }));
}

function newest(models: readonly ModelInfo[], provider: string, pattern: RegExp): ModelInfo {
  const ranked = models
    .filter(model => model.provider === provider && pattern.test(model.id))
    .map(model => ({ model, version: (pattern.exec(model.id) ?? []).slice(1).map(part => Number(part ?? 0)) }))
    .sort((a, b) => (b.version[0] ?? 0) - (a.version[0] ?? 0) || (b.version[1] ?? 0) - (a.version[1] ?? 0));
  const best = ranked[0];
  if (!best) throw new Error(`no model of ${provider} matches ${pattern}`);
  return best.model;
}

/** The ways people write one id: opus-4.5 and opus4.5, gpt5, k2.5. */
function spellings(model: ModelInfo): string[] {
  const claude = model.provider === 'anthropic' ? /^claude-([a-z]+)-(\d)(?:-(\d))?$/.exec(model.id) : null;
  if (claude) {
    const [, family, major, minor] = claude;
    const version = minor && minor !== '0' ? `${major}.${minor}` : `${major}`;
    return [`${family}-${version}`, `${family}${version}`, `claude-${family}-${version}`];
  }
  const kimi = model.provider === 'moonshot' ? /^kimi-(k[\d.]+)$/.exec(model.id) : null;
  if (kimi?.[1]) return [kimi[1]];
  const short = model.id.toLowerCase().replaceAll('-', '');
  return squashed.has(model.provider) && short.length <= longestSquashed ? [short] : [];
}
