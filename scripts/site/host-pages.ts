import { withEntry } from '../../src/cli/init/edit-config.ts';
import { type HostDefinition, hosts } from '../../src/cli/init/hosts.ts';

const platforms = { linux: 'Linux', darwin: 'macOS', win32: 'Windows' };

/** What `polylogue init` writes for a host, as a page. */
function pageOf(host: HostDefinition): string {
  const entry = host.entry({
    command: 'node',
    args: ['/path/to/polylogue/dist/main.js'],
    values: host.patienceSeconds === undefined ? {} : { CALL_PATIENCE_SECONDS: String(host.patienceSeconds) },
    references: ['OPENAI_API_KEY'],
  });
  const files = Map.groupBy(Object.keys(platforms), platform =>
    host.user({ homeDir: '~', platform, env: {} }).replaceAll('\\', '/'),
  );
  const everywhere = files.size === 1;
  const places = [...files].map(([file, found]) => {
    const names = found.map(platform => Reflect.get(platforms, platform)).join(', ');
    return `| all projects${everywhere ? '' : ` (${names})`} | \`${file}\` |`;
  });
  if (host.project) places.push(`| one project | \`${host.project}\` |`);
  return [
    `# ${host.title}`,
    `\`polylogue init\` adds Polylogue to ${host.title}. \`--dry-run\` shows the change without writing it.`,
    `\`\`\`sh\npolylogue init --client ${host.name}\n\`\`\``,
    `| scope | file |\n| --- | --- |\n${places.join('\n')}`,
    `## Entry\n\n\`\`\`${host.format}\n${withEntry(host, '', 'polylogue', entry, []).trim()}\n\`\`\``,
    host.refers
      ? 'The key stays in your environment: the entry names only its variable.'
      : 'Use `--env OPENAI_API_KEY` to copy the value of a key into the entry, or keep keys in the file `.env` of the data directory.',
    `## Afterwards\n\n${[host.next, host.permission?.('polylogue')].filter(Boolean).join('\n\n')}`,
    'Related: [hosts](../hosts.md), [get started](../get-started.md).',
  ].join('\n\n');
}

/** The pages of all hosts, from the definitions that `polylogue init` uses: path → Markdown. */
export function hostPages(): [string, string][] {
  return hosts.map(host => [`hosts/${host.name}.md`, pageOf(host)]);
}
