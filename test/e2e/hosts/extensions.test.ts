import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { hostCommand } from '../../../scripts/test-needs/host-clis.ts';
import { tempProject } from '../../support/temp-project.ts';
import { type TestHost, testHosts } from './hosts.ts';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const commands: { client: TestHost['client']; args: string[] }[] = [
  { client: 'claude', args: ['plugin', 'validate', repository] },
  { client: 'gemini', args: ['extensions', 'validate', repository] },
];

for (const { client, args } of commands) {
  const host = testHosts.find(each => each.client === client)!;
  it(`${host.title} takes what this repository offers it`, async () => {
    const home = await tempProject();
    const [program, ...first] = hostCommand(host.cli);
    const env = { PATH: process.env.PATH ?? '', HOME: home.root };
    const { status, stdout, stderr } = spawnSync(program, [...first, ...args], { encoding: 'utf8', env });
    expect(stdout + stderr).toMatch(/Validation passed|successfully validated/);
    expect(status).toBe(0);
    await home.dispose();
  });
}
