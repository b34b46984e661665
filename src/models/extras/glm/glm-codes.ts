import type { CodeOf } from '../upstream/coded-error.ts';

/** The numbers that Z.ai and BigModel put into error bodies, in words that the classifier knows; the status alone misleads. */
const codes: Readonly<Record<string, string>> = {
  1000: 'authentication',
  1001: 'authentication',
  1002: 'authentication',
  1003: 'authentication',
  1004: 'authentication',
  1110: 'authentication',
  1111: 'authentication',
  1112: 'authentication',
  1113: 'insufficient_balance',
  1121: 'authentication',
  1211: 'not_found',
  1220: 'permission',
  1261: 'context_length',
  1301: 'content_filter',
  1302: 'rate_limit',
  1303: 'rate_limit',
  1304: 'insufficient_quota',
  1305: 'rate_limit',
  1308: 'insufficient_quota',
  1309: 'insufficient_quota',
  1310: 'insufficient_quota',
  1313: 'insufficient_quota',
};

export const glmCode: CodeOf = ({ words, message }) => {
  const number = words.split(' ').find(word => Object.hasOwn(codes, word));
  if (number !== undefined) return codes[number];
  return /prompt exceeds max length|exceeds the max(imum)? context/i.test(message) ? 'context_length' : undefined;
};
