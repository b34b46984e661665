import { isRecord } from '../core/json.ts';
import type { UserAnswer, UserQuestion } from '../core/tool-host.ts';

/** Questions as requests of the protocol, by their keys. */
export function elicitations(questions: readonly UserQuestion[]) {
  const requests = questions.map(({ key, message, schema }) => {
    const params = { mode: 'form' as const, message, requestedSchema: schema };
    return [key, { method: 'elicitation/create' as const, params }] as const;
  });
  return Object.fromEntries(requests);
}

/** What a call answers that is to come again once its caller was asked. */
export function inputRequired(questions: readonly UserQuestion[]) {
  return { resultType: 'input_required' as const, content: [], inputRequests: elicitations(questions) };
}

/** The answers that a client sent. What is none counts as a question that was put aside. */
export function answersIn(told: unknown): Map<string, UserAnswer> {
  return new Map(Object.entries(isRecord(told) ? told : {}).map(([key, answer]) => [key, answerOf(answer)]));
}

function answerOf(told: unknown): UserAnswer {
  if (!isRecord(told)) return { action: 'cancel' };
  const { action, content } = told;
  if (action === 'accept') return { action, content: isRecord(content) ? content : {} };
  return { action: action === 'decline' ? 'decline' : 'cancel' };
}
