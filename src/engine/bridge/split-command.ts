/** A command as people write it in a configuration → its words. Quotes hold blanks together; nothing else means anything. */
export function splitCommand(command: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < command.length; at++) {
    const char = command.charAt(at);
    if (quote === undefined && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (quote === undefined && (char === '"' || char === "'")) {
      quote = char;
      word ??= '';
    } else if (char === quote) quote = undefined;
    else if (char === '\\' && quote !== "'" && /["'\\\s]/.test(command.charAt(at + 1))) {
      at++;
      word = (word ?? '') + command.charAt(at);
    } else word = (word ?? '') + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}
