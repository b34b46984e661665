/** What packages of vendors check of each event, and what tells as much. */
const checks = {
  openai: [
    // That what was read from JSON is JSON, all the way down.
    [/(jsonValueSchema[\w$]* = \(\) => )\w+ \?\?= z\.lazy\(\(\) => z\.union\(\[[^;]*?\]\)\);/g, '$1z.unknown();'],
    // Which of fifty types it is, by trying one after the other.
    [/(openaiResponsesChunkSchema = lazySchema\(\(\) => zodSchema\(z\.union\(\[)/, '$1z.discriminatedUnion("type", ['],
    [/,(\s+openaiResponsesNestedErrorChunkSchema\(\),\s+openaiResponsesErrorChunkSchema\(\),)/, ']),$1'],
  ],
  xai: [[/(xaiResponsesChunkSchema = \w+\.)union\(\[/, '$1discriminatedUnion("type", [']],
} as const;

/** Their schemas took more than half of the time in which an answer of one piece was read. */
export const plainSchemas = {
  name: 'plain-schemas',
  transform(code: string, id: string): string | undefined {
    const [, name] = /@ai-sdk\/(openai|xai)\/dist\/index/.exec(id) ?? [];
    if (name !== 'openai' && name !== 'xai') return undefined;
    let text = code;
    for (const [check, instead] of checks[name]) {
      if (text.search(check) < 0) throw new Error(`${id} checks events in another way: look at plainSchemas again.`);
      text = text.replace(check, instead);
    }
    return text;
  },
};

/** What a message must have to be of a kind, before the schema of that is asked: whoever asks wants to know which of the kinds it is. */
export const signs: Readonly<Record<string, string>> = {
  isJSONRPCRequest: '"method" in Object(value) && "id" in Object(value)',
  isJSONRPCNotification: '"method" in Object(value)',
  isJSONRPCResultResponse: '"result" in Object(value)',
  isJSONRPCErrorResponse: '"error" in Object(value)',
  isInitializeRequest: 'Object(value).method === "initialize"',
};

/** The protocol's SDK asks the schema of each kind whether it fits, up to ten times a request, and a schema takes long to say no. */
export const signsFirst = {
  name: 'signs-first',
  transform(code: string, id: string): string | undefined {
    if (!/@modelcontextprotocol\/server\/dist\//.test(id) || !code.includes('const isJSONRPCRequest ='))
      return undefined;
    return Object.entries(signs).reduce((text, [name, sign]) => {
      const guard = new RegExp(`(const ${name} = \\(value\\) => )(\\w+\\.safeParse\\(value\\)\\.success;)`);
      if (!guard.test(text)) throw new Error(`${id} tells messages apart in another way: look at signsFirst again.`);
      return text.replace(guard, `$1${sign} && $2`);
    }, code);
  },
};
