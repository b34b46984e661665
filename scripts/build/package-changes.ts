import { resolve } from 'node:path';

/** A part of a package's file that is replaced. The build fails where the package no longer has it. */
interface Change {
  file: RegExp;
  from: string | RegExp;
  /** As `String.replace` takes it. */
  to: string;
  /** Some of these files have no such part. */
  isOptional?: boolean;
}

/** Those whose files the build came across. */
const met = new Set<Change>();

/** A plugin of the bundler that makes the changes in their order. */
const changing = (name: string, changes: readonly Change[]) => ({
  name,
  changes,
  transform(code: string, id: string): string | undefined {
    let text = code;
    for (const change of changes.filter(({ file }) => file.test(id))) {
      const changed = text.replace(change.from, change.to);
      if (changed === text && !change.isOptional)
        throw new Error(`${id} no longer has ${change.from}: look at the changes of ${name} again.`);
      met.add(change);
      text = changed;
    }
    return text === code ? undefined : text;
  },
});

/** Parts of packages that no call of ours reaches and no bundler leaves out by itself. */
const unused: readonly Change[] = [
  // What zod has beside its schemas: messages in other languages, and its insides under a second name.
  {
    file: /\/zod\/v4\/classic\/external\.(?:js|d\.cts)$/,
    from: /^export \* as locales from .*$|(?<=[{,] )(?:regexes|util), /gm,
    to: '',
  },
  { file: /\/zod\/v4\/classic\/external\.(?:js|d\.cts)$/, from: /(?<=as core from "..\/core\/)index/, to: 'schemas' },
  // Both packages of the protocol carry the same large validator; their small one needs no code made at run time.
  {
    file: /@modelcontextprotocol\/client\/dist\/shimsNode\.mjs$/,
    from: /^import .*$/m,
    to: 'import { CfWorkerJsonSchemaValidator as AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";',
  },
  {
    file: /@modelcontextprotocol\/server\/dist\/shimsNode\.mjs$/,
    from: /^import .*ajvProvider.*$/m,
    to: 'import { CfWorkerJsonSchemaValidator as AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";',
  },
  // The package of MiniMax wants one class of Anthropic's, of which it would bring a second copy.
  {
    file: /@ai-sdk\/anthropic\/dist\/index\.js$/,
    from: /^export \{ VERSION, /m,
    to: 'export { AnthropicLanguageModel, VERSION, ',
  },
  // Of what vendors' packages make, only the models that chat are asked for: a class that nobody makes is left out.
  {
    file: /\/(?:@ai-sdk|@openrouter)\/(?:openai|google|xai|anthropic|deepseek|groq|minimax|openai-compatible|ai-sdk-provider)\/dist\/index\.js$/,
    from: /\bnew (?!(?:\w*(?:Chat|Responses)|Google|Anthropic)LanguageModel\b)\w+(?:Model|ModelLive|Files|Skills|Batch)\(/g,
    to: 'new Error(',
  },
  // One connection to one server is all that is made, and commands are sent by their names.
  {
    file: /@redis\/client\/dist\/index\.js$/,
    from: /^[\s\S]*$/,
    to: "exports.createClient = require('./lib/client').default.create;",
  },
  {
    file: /@redis\/client\/dist\/lib\/commands\/index\.js$/,
    from: /^[\s\S]*$/,
    to: `const commands = Object.fromEntries(
      [['AUTH', require('./AUTH')], ['CLIENT_SETNAME', require('./CLIENT_SETNAME')], ['READONLY', require('./READONLY')]].map(
        ([name, module]) => [name, module.default],
      ),
    );
    Object.defineProperty(exports, '__esModule', { value: true });
    exports.default = commands;
    exports.NON_STICKY_COMMANDS = commands;`,
  },
  {
    file: /@redis\/client\/dist\/lib\/command-metadata\/command-metadata-data\.js$/,
    from: /^[\s\S]*$/,
    to: 'exports.COMMAND_METADATA = {};',
  },
  // Its own measurements are begun by nobody.
  {
    file: /@redis\/client\/dist\/lib\/opentelemetry\/index\.js$/,
    from: /^[\s\S]*$/,
    to: "exports.ClientRegistry = require('./client-registry').ClientRegistry;",
  },
];

interface Resolves {
  resolve(source: string, importer?: string): Promise<{ id: string } | null>;
}

export const leanPackages = {
  ...changing('lean-packages', unused),
  resolveId(this: Resolves, source: string, importer?: string) {
    return source === '@ai-sdk/anthropic/internal' ? this.resolve('@ai-sdk/anthropic', importer) : undefined;
  },
};

/**
 * The vendors' packages check each event of a stream by a schema, as if a schema could have to wait for something. None of theirs
 * does, and without that zod runs the code that it has made of a schema: a third of what a call allocates was made otherwise.
 */
const syncSchemas = changing('sync-schemas', [
  {
    file: /@ai-sdk\/provider-utils\/dist\/index/,
    from: 'import { safeParseAsync } from "zod/v4"',
    to: 'import { safeParse as safeParseAsync } from "zod/v4"',
  },
]);

const vendors = /@ai-sdk\/[\w-]+\/dist\/index|@openrouter\/ai-sdk-provider\/dist\/index/;

/** They read an answer through streams that are piped into each other, which takes longer than to read it. */
const onePass = changing('one-pass', [
  {
    file: /@ai-sdk\/provider-utils\/dist\/index|@openrouter\/ai-sdk-provider\/dist\/index/,
    from: /\bstream\s*\.pipeThrough\(new TextDecoderStream\(\)\)\s*\.pipeThrough\(new EventSourceParserStream[\w$]*\(\)\)\s*\.pipeThrough\(\s*new TransformStream\(/g,
    to: 'transformedEvents(stream, (',
  },
  {
    file: vendors,
    from: /([\w$]+)\s*\.pipeThrough\(\s*new TransformStream\(/g,
    to: 'transformed($1, (',
    isOptional: true,
  },
  { file: /@ai-sdk\/openai\/dist\/index/, from: /= stream\.tee\(\)/g, to: '= teed(stream)' },
  { file: vendors, from: /= stream\.tee\(\)/g, to: '= teed(stream)', isOptional: true },
  {
    file: vendors,
    from: /^(?=[\s\S]*\b(?:transformedEvents|transformed|teed)\()/,
    to: `import { teed, transformed, transformedEvents } from ${JSON.stringify(resolve('src/providers/shared/one-pass.ts'))};\n`,
    isOptional: true,
  },
]);

/** What packages of vendors check of each event: their schemas took more than half of the time in which an answer of one piece was read. */
export const plainSchemas = changing('plain-schemas', [
  // That what was read from JSON is JSON, all the way down.
  {
    file: /@ai-sdk\/openai\/dist\/index/,
    from: /(jsonValueSchema[\w$]* = \(\) => )\w+ \?\?= z\.lazy\(\(\) => z\.union\(\[[^;]*?\]\)\);/g,
    to: '$1z.unknown();',
  },
  // Which of fifty types it is, by trying one after the other.
  {
    file: /@ai-sdk\/openai\/dist\/index/,
    from: /(openaiResponsesChunkSchema = lazySchema\(\(\) => zodSchema\(z\.union\(\[)/,
    to: '$1z.discriminatedUnion("type", [',
  },
  {
    file: /@ai-sdk\/openai\/dist\/index/,
    from: /,(\s+openaiResponsesNestedErrorChunkSchema\(\),\s+openaiResponsesErrorChunkSchema\(\),)/,
    to: ']),$1',
  },
  {
    file: /@ai-sdk\/xai\/dist\/index/,
    from: /(xaiResponsesChunkSchema = \w+\.)union\(\[/,
    to: '$1discriminatedUnion("type", [',
  },
]);

/** What a message must have to be of a kind, before the schema of that is asked: whoever asks wants to know which of the kinds it is. */
export const signs: Readonly<Record<string, string>> = {
  isJSONRPCRequest: '"method" in Object(value) && "id" in Object(value)',
  isJSONRPCNotification: '"method" in Object(value)',
  isJSONRPCResultResponse: '"result" in Object(value)',
  isJSONRPCErrorResponse: '"error" in Object(value)',
  isInitializeRequest: 'Object(value).method === "initialize"',
};

/** The protocol's SDK asks the schema of each kind whether it fits, up to ten times a request, and a schema takes long to say no. */
export const signsFirst = changing(
  'signs-first',
  Object.entries(signs).map(([name, sign]) => ({
    file: /@modelcontextprotocol\/server\/dist\/src-[\w-]+\.mjs$/,
    from: new RegExp(`(const ${name} = \\(value\\) => )(\\w+\\.safeParse\\(value\\)\\.success;)`),
    to: `$1${sign} && $2`,
  })),
);

/**
 * Zod makes code of a schema when that is first used, so that the first call would wait for that of many schemas of which it has
 * little use. It is made of those alone that are used often.
 */
const lazySchemas = changing('lazy-schemas', [
  {
    file: /zod\/v4\/core\/schemas\.js$/,
    from: 'ctx.jitless !== true) {',
    to: 'ctx.jitless !== true && (fastpass || ++uses > 32)) {',
  },
  { file: /zod\/v4\/core\/schemas\.js$/, from: 'let fastpass;', to: 'let fastpass, uses = 0;' },
]);

const all = [syncSchemas, onePass, plainSchemas, signsFirst, lazySchemas, leanPackages];

/** Ends the build where a file that is to be changed has another name by now. */
export const allMet = {
  name: 'all-met',
  generateBundle(): void {
    const missed = all.flatMap(({ changes }) => changes).find(change => !met.has(change));
    if (missed) throw new Error(`No file that is bundled is called ${missed.file}: look at its changes again.`);
  },
};

/** What the build changes of the packages that it bundles, in the order in which it is done. */
export const packageChanges = [...all, allMet];
