/** Reads a refusal of an Ollama server into the shape that our errors are made from. */
export async function ollamaFailure(response: Response): Promise<Error> {
  const text = await response.text();
  return Object.assign(new Error(text), {
    statusCode: response.status,
    responseHeaders: Object.fromEntries(response.headers),
    responseBody: text,
    ...codeFor(text),
  });
}

/** An error that came as a line of a stream under a 200. */
export function ollamaStreamFailure(message: string): Error {
  return Object.assign(new Error(message), codeFor(message));
}

/** Ollama has no codes; what it says of a prompt that is too long depends on the engine below it. */
const tooLong = /exceeds? the (available |maximum )?context (length|size|window)|exceed_context_size|prompt too long/i;

function codeFor(message: string): { code?: string } {
  return tooLong.test(message) ? { code: 'context_length_exceeded' } : {};
}
