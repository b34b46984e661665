import type { ProviderDefinition } from '../../src/models/provider.ts';
import { cell, code, table } from './markdown.ts';

function section(provider: ProviderDefinition): string {
  const rows = Object.values(provider.options).map(option => [
    option.env.map(code).join(' or '),
    option.default === undefined ? '' : code(String(option.default)),
    cell(option.doc),
  ]);
  const names = provider.names.length > 0 ? ` (also ${provider.names.map(code).join(', ')})` : '';
  const parts = [
    `## ${cell(provider.title)}`,
    `Name before the colon: ${code(provider.id)}${names}.${provider.onlyByName ? ' Used only when it is named, never chosen automatically.' : ''}`,
    rows.length > 0 ? table(['environment', 'default', 'meaning'], rows) : 'It needs no settings.',
  ];
  return parts.join('\n\n');
}

/** The reference of all providers, in Markdown. */
export function describeProviders(providers: readonly ProviderDefinition[]): string {
  return ['# Providers', ...providers.map(section)].join('\n\n');
}
