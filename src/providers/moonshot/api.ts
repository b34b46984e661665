import type { LanguageModelV4FunctionTool, LanguageModelV4ToolCall } from '@ai-sdk/provider';
import { isAppError } from '../../core/errors.ts';
import { isRecord, numberIn, recordIn, recordsIn } from '../../core/json.ts';
import { safeCut } from '../../core/text.ts';
import { mayBeBilled } from '../../models/budget.ts';
import type { AccountBalance, VendorEndpoint } from '../../models/provider.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { vendorJson } from '../shared/http.ts';

const timeoutMs = 15_000;

/** US dollars at moonshot.ai, yuan at moonshot.cn. Throws an `AppError`. */
export async function moonshotBalance(endpoint: VendorEndpoint, signal: AbortSignal): Promise<AccountBalance> {
  const path = '/users/me/balance';
  const { data } = await vendorJson(endpoint, { path, what: 'its balance', timeoutMs, signal });
  if (!isRecord(data) || typeof data.available_balance !== 'number') throw badUpstream('The balance has no amount.');
  const { available_balance: available, voucher_balance: voucher, cash_balance: cash } = data;
  return { available, voucher: numberIn(voucher), cash: numberIn(cash) };
}

/** One of the tools that Moonshot runs for whoever asks, beside a chat in which they are functions like any other. */
export type MoonshotFormula = ReturnType<typeof createMoonshotFormula>;

const toolMs = 30_000;
const maxReasonLength = 300;
const toolName = /^[a-zA-Z_][\w-]{0,63}$/;

/** The search of the platform, for models that can't use the built-in one because they always think. */
const searchUri = 'moonshot/web-search:latest';

export function createMoonshotFormula(endpoint: VendorEndpoint) {
  let known: LanguageModelV4FunctionTool[] | undefined;
  const path = `/formulas/${searchUri}`;
  const what = `its tool ${searchUri}`;
  return {
    /** What the model is shown, as the vendor declares it. Throws an `AppError`. */
    async tools(signal: AbortSignal) {
      if (known) return known;
      const answer = await vendorJson(endpoint, { path: `${path}/tools`, what, timeoutMs: toolMs, signal });
      const declared = toolsOf(answer.tools);
      // Asked for again with the next call where the vendor told of none.
      if (declared.length > 0) known = declared;
      return declared;
    },
    /** Has one call done, its arguments as they came. Only a caller who gave up makes it throw. */
    async run({ toolName: name, input }: LanguageModelV4ToolCall, signal: AbortSignal) {
      const body = { name, arguments: input };
      try {
        return resultOf(await vendorJson(endpoint, { path: `${path}/fibers`, body, what, timeoutMs: toolMs, signal }));
      } catch (error) {
        // The model is told, and answers with what it has.
        if (signal.aborted || !isAppError(error)) throw error;
        return { ...failed(error.message), done: mayBeBilled(error) };
      }
    },
  };
}

const toolsOf = (declared: unknown): LanguageModelV4FunctionTool[] =>
  recordsIn(declared).flatMap(({ type, function: definition }): LanguageModelV4FunctionTool[] => {
    if (type !== 'function' || !isRecord(definition)) return [];
    const { name, description, parameters } = definition;
    if (typeof name !== 'string' || !toolName.test(name) || !isRecord(parameters)) return [];
    const inputSchema = { ...parameters, type: 'object' as const };
    return [{ type: 'function', name, ...(typeof description === 'string' && { description }), inputSchema }];
  });

/**
 * `text` is for the model alone: sealed for most tools, and to be handed on as it is; a failure is told in words. `done`: it was done,
 * or may have been, and is charged.
 */
function resultOf({ status, context, error }: Record<string, unknown>) {
  const { output, encrypted_output: sealed } = recordIn(context);
  const text = [output, sealed].find(each => typeof each === 'string' && each !== '');
  if (status === 'succeeded' && typeof text === 'string') return { text, done: true };
  const reason = isRecord(error) && typeof error.message === 'string' ? error.message : error;
  return failed(typeof reason === 'string' ? reason : `it ended as ${String(status)}`);
}

function failed(reason: string) {
  return { text: `Error: the tool failed: ${safeCut(reason, maxReasonLength)}`, done: false };
}
