import type { OptionSpec } from '../../core/option.ts';

type Kind = Pick<OptionSpec, 'type' | 'default' | 'choices' | 'min' | 'max' | 'fractional'>;

export const text = { type: 'string' } as const;
export const list = { type: 'list' } as const;
export const path = { type: 'path' } as const;
export const paths = { type: 'paths' } as const;
export const url = { type: 'url' } as const;

/** A text that is this one until somebody sets another. */
export const textOr = (value: string) => ({ type: 'string', default: value }) as const;

export const onOrOff = (value: boolean) => ({ type: 'boolean', default: value }) as const;

export const number = (value: number, min: number, max: number) =>
  ({ type: 'number', default: value, min, max }) as const;

/** A number that is unset until somebody sets it. */
export const between = (min: number, max: number) => ({ type: 'number', min, max }) as const;

/** One of a few words; the second argument is the one that counts when nobody sets any. */
export const oneOf = <const Word extends string>(choices: readonly Word[], word: NoInfer<Word>) =>
  ({ type: 'string', choices, default: word }) as const;

/** An option: its heading, form, names (the canonical one first, then others, a flag with its `--`), and what else is to be said. */
export const setting = <const Of extends Kind, const More extends Partial<OptionSpec> & Pick<OptionSpec, 'doc'>>(
  group: string,
  kind: Of,
  names: readonly string[],
  more: More,
) => {
  const flag = names.find(name => name.startsWith('--'));
  const env = names.filter(name => name !== flag);
  return { env, group, ...kind, ...more, ...(flag !== undefined && { flag: flag.slice(2) }) };
};

/** One that a trusted project's own `.env` may not set. */
export const operator: typeof setting = (group, kind, names, more) =>
  setting(group, kind, names, { ...more, operatorOnly: true });
