import { type FieldError, inputError, isAppError, limitError } from '../../domain/error.ts';
import { estimateTokens } from '../../domain/tokens.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import { choosePanel } from '../panel/choose.ts';
import { findSeat, modelName } from '../panel/seats.ts';
import type { Fan, FanoutOptions, Slot } from './fan.ts';
import type { WrapperShape } from './shape.ts';

export const modelsField = 'models_prefixed_by_provider';

const mostModels = 24;
/** The part of a window that a text may take at the most; the rest is the answer's. */
const textShare = 0.6;

/**
 * Who is asked, in the order of the request: the named models, else the operator's DEFAULT_MODELS, else the default model or
 * one that is chosen (several of different vendors, where a decision follows). A name that leads nowhere keeps its slot.
 */
export async function takeSlots(fan: Fan, shape: WrapperShape): Promise<Slot[]> {
  const { options, call, text } = fan;
  const request = { category: shape.category, needs: {}, effort: call.common.effort };
  const named = namesIn(call.args[modelsField]);
  if (named.length > mostModels) {
    throw limitError('size', `${named.length} models were named; one call asks at most ${mostModels}.`, {
      next: `Name at most ${mostModels} models.`,
    });
  }
  await refuseUnprefixed(options, modelsField, named, request);
  const names = named.length > 0 ? named : options.fanout.defaultModels;
  if (names.length > 0) return takeNamed(options, names, request);
  const needs = { window: Math.ceil(estimateTokens(text) / textShare) };
  if (shape.decision !== undefined) {
    const seats = await choosePanel(options.route, { ...request, needs });
    return seats.map(({ model, who, warnings }) => ({ requested: model, who, warnings }));
  }
  const { candidates, requested, corrected, warnings } = await options.route({ ...request, needs });
  const [first, ...others] = candidates;
  if (!first) throw inputError('No model can be asked.');
  return [{ requested, who: { candidates: [first, ...others], corrected }, warnings }];
}

export async function takeNamed(
  { route }: FanoutOptions,
  names: readonly string[],
  request: Omit<ModelRequest, 'name'>,
): Promise<Slot[]> {
  const slots: Slot[] = [];
  for (const name of names) slots.push({ requested: name, ...(await findSeat(route, { ...request, name })) });
  return slots;
}

/** Throws for names without a provider in front, with the names that they probably stand for. */
export async function refuseUnprefixed(
  options: FanoutOptions,
  field: string,
  names: readonly string[],
  request: Omit<ModelRequest, 'name'>,
): Promise<void> {
  const errors: FieldError[] = [];
  for (const name of names) {
    const prefix = /^([^:]*):/.exec(name)?.[1];
    if (prefix !== undefined && options.fanout.providerOf(prefix)) continue;
    const meant = await meantBy(options, { ...request, name });
    // What stands before the colon is no provider of ours: its own slot says so.
    if (prefix !== undefined && meant === undefined) continue;
    errors.push({ field, error: `"${name}" names no provider`, allowed: [meant ?? 'provider:model'] });
  }
  if (errors.length === 0) return;
  const told = errors.map(({ error }) => error).join(', ');
  throw inputError(`${told}: every model is written as provider:model.`, {
    next: `Write ${errors.flatMap(({ allowed = [] }) => allowed).join(', ')}; "list_providers" and "list_models" have the names. Leave ${field} out to have the default asked.`,
    validationErrors: errors,
  });
}

async function meantBy({ route }: FanoutOptions, request: ModelRequest): Promise<string | undefined> {
  try {
    const [first] = (await route(request)).candidates;
    return first && modelName(first);
  } catch (error) {
    // Nobody knows it: then there is nothing to suggest.
    if (!isAppError(error) || error.kind === 'bug') throw error;
    return undefined;
  }
}

function namesIn(value: unknown): string[] {
  // Hosts that know no lists send "a,b".
  const list = Array.isArray(value) ? value.map(String) : [];
  return list.flatMap(item => item.split(',')).flatMap(item => item.trim() || []);
}
