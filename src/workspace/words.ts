const wordPattern = /[\p{L}_$][\p{L}\p{N}_$]*|\p{N}{3,}/gu;
const maxWords = 40;
/** Scripts that are written without spaces: two of their characters in a row count as a word. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{2,}/gu;

/** Words that say nothing about what is looked for. */
const empty = new Set(
  'about above after again all also and any are because been before being below between both but can cannot could did does doing done down during each else every few file files find first for from function further get give given had has have having here how into its just know last let like line lines look made make many may might more most much must need new next not now only other our out over own please read same see shall should show some such sure tell than that the their them then there these they this those through too under until use used using very want was way were what when where which while who why will with without would you your'.split(
    ' ',
  ),
);

/** The words of a question that may stand in a file, lower-case; names in camel case and snake case give their parts too. */
export const questionWords = (question: string): string[] =>
  [...new Set(tellingWords(question.slice(0, 20_000)))].slice(0, maxWords);

/** The words of a text that say something, as `wordsOf` gives them. */
export function* tellingWords(text: string): Generator<string> {
  for (const word of wordsOf(text)) if (isTellingWord(word)) yield word;
}

/** Whether a word, lower-case, says something about a text. */
export const isTellingWord = (word: string): boolean =>
  word.length > 2 ? !empty.has(word) : word.length === 2 && /[^\p{ASCII}]/u.test(word);

/** What follows these words in a source is declared. */
export const declaringWords = 'class def enum fn func function interface module namespace struct trait type'.split(' ');
const kindWords = [...declaringWords, 'component', 'method'].join('|');
/** `class Field`, `Field class`, `Model.save`, `save()`, `maxBytes`, `max_bytes`, and what stands in backticks. */
const namePattern = (() => {
  const name = String.raw`[\p{L}_$][\p{L}\p{N}_$]*`;
  const forms = [
    String.raw`(?<=\b(?:${kindWords})\s{1,9})${name}`,
    String.raw`${name}(?=\s{1,9}(?:${kindWords})\b|\(|\x60|::[\p{L}_$]|[.#][\p{L}_$])`,
    String.raw`(?<=[\p{L}\p{N}_$](?:::|[.#])|\x60)${name}`,
    String.raw`[\p{L}_$][\p{L}\p{N}]*(?:[_$]|\p{Ll}\p{Lu})[\p{L}\p{N}_$]*|(?<=\S\s{1,9})\p{Lu}\p{Ll}[\p{L}\p{N}]+`,
  ];
  // A name begins where a word does, and spaces are few: otherwise a long run would be tried from each of its characters.
  return new RegExp(String.raw`(?<![\p{L}\p{N}_$])(?:${forms.join('|')})`, 'gu');
})();

/** Names of things in code that a question speaks of, as far as it writes them as names; a single word is one. */
export const namesIn = (question: string): string[] => {
  const single = /^\s*([\p{L}_$][\p{L}\p{N}_$]*)\s*$/u.exec(question)?.[1];
  return single ? [single] : [...question.matchAll(namePattern)].map(([name]) => name);
};

/** What forms of one English word have in common, cut by its endings: `pric` of prices, priced and pricing. */
export function stem(word: string): string {
  if (word.length < 4) return word;
  const single = word.replace(/ie[sd]$/, 'y').replace(/(?<=ss|sh|ch|x)es$|(?<=[^su])s$/, '');
  const shorter = single.replace(/(?:ing|ed|(?<=[st])ion)$|(?<=....)[eo]r$/, '');
  const isWord = shorter.length > 2 && /[aeiouy]/.test(shorter);
  const cut = isWord && shorter !== single ? shorter.replace(/([bdfgmnprt])\1$/, '$1') : single;
  return cut.length > 3 ? cut.replace(/e$/, '').replace(/y$/, 'i') : cut;
}

/** The words of a text, lower-case: also the parts of names, and pairs of characters where nothing separates words. */
export function* wordsOf(text: string): Generator<string> {
  for (const [word] of text.matchAll(wordPattern)) {
    const pairs = [...word.matchAll(unspaced)].flatMap(([run]) => pairsOf(run));
    if (pairs.length > 0) yield* pairs;
    else {
      yield word.toLowerCase();
      const spaced = word.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2');
      const parts = spaced.split(/[\s_$]+/).filter(part => part !== '');
      if (parts.length > 1) for (const part of parts) yield part.toLowerCase();
    }
  }
}

function pairsOf(run: string): string[] {
  const characters = [...run];
  return characters.slice(1).map((second, index) => `${characters[index]}${second}`);
}
