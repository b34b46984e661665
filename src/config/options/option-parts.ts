import type { OptionSpec } from '../../core/option.ts';

type Kind = Pick<OptionSpec, 'type' | 'default' | 'choices' | 'min' | 'max' | 'fractional'>;

export const text = { type: 'string' } as const;
export const list = { type: 'list' } as const;
export const path = { type: 'path' } as const;
export const paths = { type: 'paths' } as const;
export const url = { type: 'url' } as const;

export const onOrOff = (value: boolean) => ({ type: 'boolean', default: value }) as const;

export const number = (value: number, min: number, max: number) =>
  ({ type: 'number', default: value, min, max }) as const;

/** A number that is unset until somebody sets it. */
export const between = (min: number, max: number) => ({ type: 'number', min, max }) as const;

/** One of a few words; the second argument is the one that counts when nobody sets any. */
export const oneOf = <const Word extends string>(choices: readonly Word[], word: NoInfer<Word>) =>
  ({ type: 'string', choices, default: word }) as const;

/** How an option begins: its heading, what it takes, and its names in the environment, the canonical one first. */
export const setting = <const Of extends Kind>(group: string, kind: Of, ...env: [string, ...string[]]) => ({
  env,
  group,
  ...kind,
});

/** One that a trusted project's own `.env` may not set. */
export const operator = <const Of extends Kind>(group: string, kind: Of, ...env: [string, ...string[]]) => ({
  ...setting(group, kind, ...env),
  operatorOnly: true,
});
