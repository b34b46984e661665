/** What OpenAI's package checks of each event, and what tells as much. */
const checks = [
  // That what was read from JSON is JSON, all the way down.
  [/(jsonValueSchema[\w$]* = \(\) => )\w+ \?\?= z\.lazy\(\(\) => z\.union\(\[[^;]*?\]\)\);/g, '$1z.unknown();'],
  // Which of fifty types it is, by trying one after the other.
  [/(openaiResponsesChunkSchema = lazySchema\(\(\) => zodSchema\(z\.union\(\[)/, '$1z.discriminatedUnion("type", ['],
  [/,(\s+openaiResponsesNestedErrorChunkSchema\(\),\s+openaiResponsesErrorChunkSchema\(\),)/, ']),$1'],
] as const;

/** Its schemas took more than half of the time in which an answer of one piece was read. */
export const plainSchemas = {
  name: 'plain-schemas',
  transform(code: string, id: string): string | undefined {
    if (!/@ai-sdk\/openai\/dist\/index/.test(id)) return undefined;
    return checks.reduce((text, [check, instead]) => {
      if (text.search(check) < 0) throw new Error(`${id} checks events in another way: look at plainSchemas again.`);
      return text.replace(check, instead);
    }, code);
  },
};
