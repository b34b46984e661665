import type { CodeOf } from '../upstream/coded-error.ts';

/** What Moonshot says in its own words, in those that the classifier knows. */
export const kimiCode: CodeOf = ({ words, message }) => {
  if (/exceeded_current_quota/.test(words)) return 'insufficient_quota';
  if (/input token length too long|exceeded model token limit/i.test(message)) return 'context_length';
  return undefined;
};
