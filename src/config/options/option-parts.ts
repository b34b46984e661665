import type { OptionSpec } from '../../core/option.ts';

/** How an option begins: the heading that it stands under, and its names in the environment, the canonical one first. */
export function setting(group: string, ...env: [string, ...string[]]) {
  return { env, group };
}

/** The same for one that a trusted project's own `.env` may not set. */
export function operatorSetting(group: string, ...env: [string, ...string[]]) {
  return { env, group, operatorOnly: true };
}

export function number<const Facts extends Pick<OptionSpec, 'default' | 'min' | 'max' | 'fractional'>>(facts: Facts) {
  return { type: 'number', ...facts } as const;
}

export function onOrOff(value: boolean) {
  return { type: 'boolean', default: value } as const;
}

/** One of a few words; the second argument is the one that counts when nobody sets any. */
export function oneOf<const Word extends string>(choices: readonly Word[], word: NoInfer<Word>) {
  return { type: 'string', choices, default: word } as const;
}
