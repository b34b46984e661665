import type { ModelInfo } from '../../core/model.ts';
import { malformedNameError } from './refusals.ts';
import type { RosterProvider } from './roster.ts';
import { mayServeMore } from './roster.ts';
import type { Scene } from './scene.ts';
import type { Suffixed } from './suffixes.ts';
import { splitSuffix } from './suffixes.ts';

/** An id nobody here knows, sent to the provider as typed. */
export interface Passed {
  model: ModelInfo;
  suffix?: Suffixed;
  warning: string;
}

/** The reason of a candidate that nobody here knows. */
export const passedOnReason = 'asked for by name, passed on as typed';

/** Assumed of a model nothing is known of; small enough to be safe. */
const assumedWindow = 32_768;
const assumedMaxOutput = 8_192;
const assumedScore = 5;

/** Ids go into addresses of some vendors: nothing may lead out of their place. */
const idPattern = /^[\p{L}\p{N}~][\p{L}\p{N}._:@/+~-]*$/u;

/** Passes an unknown id on where its provider may serve more than is listed; undefined where its list says no. */
export function passThrough(scene: Scene, text: string, scope: RosterProvider | undefined): Passed | undefined {
  const provider = scope ?? aggregatorFor(scene, text);
  if (!provider?.configured) return undefined;
  if (!mayServeMore(provider) && !scene.policy.allowUnknown) return undefined;
  const split = splitSuffix(text);
  const suffix = split?.ask ? split : undefined;
  const id = suffix?.base ?? text;
  if (!idPattern.test(id) || id.includes('..')) throw malformedNameError('has characters that no model id has');
  const effort = suffix?.ask?.effort;
  return {
    model: {
      provider: provider.id,
      id,
      name: id,
      aliases: [],
      window: assumedWindow,
      maxOutput: assumedMaxOutput,
      input: ['text'],
      efforts: effort ? [effort] : [],
      reasoning: effort !== undefined && effort !== 'none',
      temperature: 'range',
      tools: false,
      score: assumedScore,
      allowCodeGeneration: false,
      status: 'active',
    },
    ...(suffix ? { suffix } : {}),
    warning: `"${id}" is not in the list of ${provider.id} known here; it is passed on as typed, with a window of ${assumedWindow} tokens assumed.`,
  };
}

/** `vendor/model` is an aggregator's way of naming; it needs no prefix. */
function aggregatorFor(scene: Scene, text: string): RosterProvider | undefined {
  if (!/^~?[\w.-]+\/[\w.-]+(:[\w.-]+)*$/.test(text)) return undefined;
  return scene.provider('openrouter');
}
