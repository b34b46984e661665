import type { ProviderDefinition } from '../../src/models/provider.ts';
import { cell, code, table } from './markdown.ts';

function section(provider: ProviderDefinition): string {
  const { docs } = provider;
  const rows = Object.values(provider.options).map(option => [
    option.env.map(code).join(' or '),
    option.default === undefined ? '' : code(String(option.default)),
    cell(option.doc),
  ]);
  const names = provider.names.length > 0 ? ` (also ${provider.names.map(code).join(', ')})` : '';
  const parts = [
    `## ${cell(provider.title)}`,
    `Name before the colon: ${code(provider.id)}${names}.${provider.onlyByName ? ' Used only when it is named, never chosen automatically.' : ''}`,
    ...(docs ? [`Asks: ${cell(docs.endpoint)}`] : []),
    rows.length > 0 ? table(['environment', 'default', 'meaning'], rows) : 'It needs no settings.',
    ...(docs && docs.quirks.length > 0 ? [docs.quirks.map(quirk => `- ${cell(quirk)}`).join('\n')] : []),
    ...(docs ? [`Written from: ${cell(docs.source)}`] : []),
  ];
  return parts.join('\n\n');
}

const ownServers = `## Servers of your own

Any number of servers with an OpenAI chat interface go into \`config.json\` in POLYLOGUE_HOME, and each becomes a provider:

\`\`\`json
{
  "endpoints": [
    {
      "id": "myvllm",
      "names": ["mv"],
      "api_url": "http://127.0.0.1:8000/v1",
      "api_key_env": "MYVLLM_KEY",
      "models": ["llama-3", { "model_name": "qwen3", "context_window": 40960, "supports_images": true }],
      "context_window": 32768,
      "headers": { "X-Team": "blue" }
    }
  ]
}
\`\`\`

Only \`id\` and \`api_url\` are needed; the key is \`api_key\`, or \`api_key_env\` for the name of a variable. Ask as \`myvllm:llama-3\`.
What the server lists can be asked too, with the window that it tells; where nobody tells one, \`context_window\`, then
CUSTOM_CONTEXT_WINDOW counts, else 32,768 tokens are assumed and the reply says so. An entry that can't be used is left out, and
\`polylogue doctor\` says why. No project's file can add one.`;

/** The reference of all providers, in Markdown. */
export function describeProviders(providers: readonly ProviderDefinition[]): string {
  return ['# Providers', ...providers.map(section), ownServers].join('\n\n');
}
