/** What OpenAI's interface makes of a model by its id; servers that merely speak its dialect have other ids. */
export interface OpenAiModel {
  /** One of OpenAI's own. */
  known: boolean;
  reasoning: boolean;
  /** The efforts that it takes; undefined where nobody told. */
  efforts?: readonly string[];
  /** Takes sampling parameters as long as its effort is `none`. */
  samplesWithoutEffort: boolean;
}

export const openAiEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

const oSeries = ['low', 'medium', 'high'];

export function openAiModel(id: string): OpenAiModel {
  if (/^o\d/.test(id)) return { known: true, reasoning: true, efforts: oSeries, samplesWithoutEffort: false };
  const match = /^gpt-(\d+)o?(?:\.(\d+))?(?:-(.+))?$/.exec(id);
  if (!match) return { known: false, reasoning: false, samplesWithoutEffort: false };
  const major = Number(match[1]);
  const minor = Number(match[2] ?? 0);
  const variant = match[3] ?? '';
  if (major < 5 || variant.startsWith('chat')) return { known: true, reasoning: false, samplesWithoutEffort: false };
  const efforts = gptEfforts(major, minor, variant);
  return {
    known: true,
    reasoning: true,
    ...(efforts && { efforts }),
    samplesWithoutEffort: efforts?.includes('none') ?? false,
  };
}

function gptEfforts(major: number, minor: number, variant: string): readonly string[] | undefined {
  if (/codex|cyber|deep-research/.test(variant)) return undefined;
  if (variant.startsWith('pro')) return major === 5 && minor === 0 ? ['high'] : ['medium', 'high', 'xhigh'];
  if (major >= 6) {
    const thinksAlways = variant.startsWith('astra') || (minor >= 1 && variant.startsWith('sol'));
    return thinksAlways ? openAiEfforts.slice(2) : openAiEfforts.filter(effort => effort !== 'minimal');
  }
  if (minor === 0) return ['minimal', 'low', 'medium', 'high'];
  if (minor === 1) return ['none', 'low', 'medium', 'high'];
  const upToXhigh = ['none', 'low', 'medium', 'high', 'xhigh'];
  return minor < 6 ? upToXhigh : [...upToXhigh, 'max'];
}
