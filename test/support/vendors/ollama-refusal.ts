import type { Refusal } from './refusal.ts';

/** Ollama's error shape: one text, no codes. */
export function ollamaRefusal(message: string, status = 400): Refusal {
  return { status, message, body: { error: message } };
}

export function notPulled(id: string): Refusal {
  return ollamaRefusal(`model '${id}' not found`, 404);
}

const texts: Readonly<Record<number, string>> = {
  400: 'invalid options: num_ctx',
  401: 'unauthorized',
  402: 'this model requires a subscription, upgrade for access',
  403: 'cloud models are disabled on this server',
  404: "model 'the-model' not found",
  429: 'too many requests',
  503: 'server busy, please try again. maximum pending requests exceeded',
};

export function ollamaStatusBody(status: number): unknown {
  return ollamaRefusal(texts[status] ?? 'an error was encountered while running the model').body;
}
