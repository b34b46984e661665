import type { UserAnswer, UserQuestion } from '../../src/core/tool-host.ts';
import type { Document, TestProduct } from './product.ts';

/** Calls a tool as a client would that can ask its user; `asked` gets the questions. */
export async function callAsking(
  { product }: TestProduct,
  name: string,
  args: Record<string, unknown>,
  answer: (question: UserQuestion) => UserAnswer,
): Promise<{ reply: Document; asked: UserQuestion[] }> {
  const asked: UserQuestion[] = [];
  const principal = { owner: 'local', root: product.root, client: 'test' };
  const ask = async (question: UserQuestion) => {
    asked.push(question);
    return answer(question);
  };
  const reply = await product.host.call({ name, arguments: args, principal, ask }, new AbortController().signal);
  return { reply: { ...reply.document, isError: reply.isError }, asked };
}
