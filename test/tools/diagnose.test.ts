import { execFile } from 'node:child_process';
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { UserAnswer } from '../../src/core/tool-host.ts';
import { callAsking } from '../support/call-asking.ts';
import { type GitRepository, gitRepository } from '../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const run = promisify(execFile);
const failures = join(import.meta.dirname, '../fixtures/failures');
let vendor: FakeVendor;
let project: TempProject;
let repo: GitRepository;
let polylogue: TestProduct;

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject();
  repo = await gitRepository(project.root);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', POLYLOGUE_TOOLSETS: 'core,agent' };
  polylogue = await testProduct({ root: project.root, env });
});
afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const finding = {
  can_tell: true,
  summary: 'It fails.',
  root_cause: 'A case was forgotten.',
  evidence: [],
  impact: 'All of them.',
  recommendation: 'Mend it.',
};
const says = (answer: Record<string, unknown>) => vendor.script({ answer: JSON.stringify(answer) });
const prompt = () =>
  vendor.requests
    .at(-1)
    ?.messages.map(({ text }) => text)
    .join('\n') ?? '';
const unchanged = async () => expect(await repo.git('status', '--porcelain')).toBe('');

/** A recorded failure in a repository of its own; answers what its program wrote. */
async function failed(name: string): Promise<{ stderr: string; diff: string }> {
  const from = join(failures, name);
  await cp(from, project.root, { recursive: true, filter: path => !/(?:stderr\.txt|model\.diff)$/.test(path) });
  await repo.commit();
  const text = (file: string) => readFile(join(from, file), 'utf8');
  return { stderr: await text('stderr.txt'), diff: await text('model.diff') };
}

describe('ten recorded failures in five languages', () => {
  const cases = [
    { name: 'node-cart', reads: ['src/cart.js', 'src/checkout.js'], changes: { 'src/cart.js': '?.rate ?? 0' } },
    { name: 'node-settings', reads: ['lib/settings.js'], changes: { 'lib/settings.js': '["a", "b"] }' } },
    { name: 'python-report', reads: ['report/build.py', 'report/rates.py'], withheld: /not there/ },
    { name: 'python-orders', reads: ['orders.py'], changes: { 'orders.py': 'sys.exit(main())\n    # nothing' } },
    { name: 'go-stock', reads: ['stock.go'], withheld: /outside/ },
    { name: 'go-workers', reads: ['main.go', 'pool/pool.go'], changes: { 'pool/pool.go': 'min(from+share, count)' } },
    { name: 'rust-words', reads: ['src/words.rs', 'src/main.rs'], withheld: /more than change lines/ },
    { name: 'rust-grid', reads: ['src/main.rs'], changes: { 'src/main.rs': '0..height {' } },
    {
      name: 'java-invoice',
      reads: ['src/shop/billing/Invoice.java'],
      changes: { 'src/shop/billing/UnknownCountry.java': 'no rate', 'src/shop/billing/Invoice.java': 'return rate;' },
    },
    { name: 'java-seats', reads: ['src/shop/Seats.java'], changes: { 'src/shop/Seats.java': 'length) throw' } },
  ];

  it.each(cases)('$name: reads what it is about; its patch applies cleanly or is withheld', async each => {
    const { stderr, diff } = await failed(each.name);
    says({ ...finding, patch: diff });
    const reply = await polylogue.call('diagnose', { stderr });
    expect(reply).toMatchObject({ status: 'diagnosed', root_cause: 'A case was forgotten.', impact: 'All of them.' });
    expect(reply.metadata.files.embedded).toEqual(each.reads.map(path => project.path(path)));
    await unchanged();
    if (!each.changes) {
      expect(reply.patch).toBeUndefined();
      expect(reply.patch_withheld).toMatch(each.withheld);
      return;
    }
    expect(reply.patch_withheld).toBeUndefined();
    expect(reply.patch.files.map(({ path }: { path: string }) => path).sort()).toEqual(
      Object.keys(each.changes).sort(),
    );
    await project.write('.git/reply.patch', reply.patch.diff);
    await repo.git('apply', '.git/reply.patch');
    for (const [path, text] of Object.entries(each.changes)) {
      expect(await readFile(project.path(path), 'utf8')).toContain(text);
    }
  });

  it('node-cart: the program runs once the patch is applied', async () => {
    const { stderr, diff } = await failed('node-cart');
    says({ ...finding, patch: diff });
    const reply = await polylogue.call('diagnose', { stderr });
    await project.write('.git/reply.patch', reply.patch.diff);
    await repo.git('apply', '.git/reply.patch');
    expect((await run(process.execPath, [project.path('src/checkout.js')])).stdout).toBe('to pay: 40\n');
  });

  it('java-seats: keeps the line ends of the file', async () => {
    const { stderr, diff } = await failed('java-seats');
    says({ ...finding, patch: diff });
    const reply = await polylogue.call('diagnose', { stderr });
    await project.write('.git/reply.patch', reply.patch.diff);
    await repo.git('apply', '.git/reply.patch');
    expect(await readFile(project.path('src/shop/Seats.java'), 'utf8')).not.toMatch(/[^\r]\n/);
  });
});

describe('diagnose', () => {
  it('sends the error output and the files as material, and asks for the form', async () => {
    const { stderr } = await failed('node-cart');
    says(finding);
    await polylogue.call('diagnose', { stderr, command: 'node src/checkout.js' });
    expect(prompt()).toContain('This failed: node src/checkout.js');
    expect(prompt()).toContain("Cannot read properties of undefined (reading 'rate')");
    expect(prompt()).toContain('const rate = customer.membership.rate;');
    expect(prompt()).toContain('"can_tell"');
  });

  it('corrects the line of evidence that stands nearby, and marks what is not there', async () => {
    const { stderr } = await failed('node-cart');
    const evidence = [
      { file: 'src/cart.js', line: 5, text: 'const rate = customer.membership.rate;' },
      { file: 'src/cart.js', line: 6, text: 'const rate = guest.rate;' },
      { file: 'src/nowhere.js', line: 1, text: 'x' },
      { file: project.path('src/checkout.js'), line: 10, text: 'checkout(guest);' },
    ];
    says({ ...finding, evidence });
    const reply = await polylogue.call('diagnose', { stderr });
    expect(reply.evidence).toEqual([
      { file: 'src/cart.js', line: 6, text: 'const rate = customer.membership.rate;', checked: true },
      { file: 'src/cart.js', line: 6, text: 'const rate = guest.rate;', checked: false },
      { file: 'src/nowhere.js', line: 1, text: 'x', checked: false },
      { file: 'src/checkout.js', line: 10, text: 'checkout(guest);', checked: true },
    ]);
  });

  it("says that it can't tell, and what is missing, instead of a guess; no patch then", async () => {
    says({
      ...finding,
      can_tell: false,
      needs: ['the log of the database'],
      patch: '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b',
    });
    const reply = await polylogue.call('diagnose', { stderr: 'Segmentation fault (core dumped)' });
    expect(reply).toMatchObject({
      status: 'cannot_tell',
      root_cause: 'cannot tell from this',
      needs: ['the log of the database'],
    });
    expect(reply.patch ?? reply.patch_withheld).toBeUndefined();
  });

  it('hands on an answer that is no diagnosis as it is', async () => {
    vendor.script({ answer: 'I need the whole log.' });
    const reply = await polylogue.call('diagnose', { stderr: 'boom' });
    expect(reply).toMatchObject({ status: 'continuation_available', content: 'I need the whole log.' });
  });

  it('asks for no patch, and shows none, when none is wanted', async () => {
    const { stderr, diff } = await failed('node-cart');
    says({ ...finding, patch: diff });
    const reply = await polylogue.call('diagnose', { stderr, patch: false });
    expect(prompt()).toContain('Leave the key "patch" out.');
    expect(reply.patch ?? reply.patch_withheld).toBeUndefined();
  });

  it('shows no patch for the data folder of the server, which nothing is written to for a model', async () => {
    await polylogue.close();
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', POLYLOGUE_TOOLSETS: 'core,agent' };
    polylogue = await testProduct({ root: project.root, env: { ...env, POLYLOGUE_HOME: project.path('.home') } });
    says({ ...finding, patch: '--- /dev/null\n+++ b/.home/clis/evil.json\n@@ -0,0 +1 @@\n+{}\n' });
    const reply = await polylogue.call('diagnose', { stderr: 'boom' });
    expect(reply.patch).toBeUndefined();
    expect(reply.patch_withheld).toContain('data directory of Polylogue');
  });

  it('refuses a call without error output', async () => {
    const reply = await polylogue.call('diagnose', { command: 'make' });
    expect(reply).toMatchObject({
      isError: true,
      error: { code: 'MISSING_PARAMETER', validation_errors: [{ field: 'stderr' }] },
    });
    expect(vendor.requests).toHaveLength(0);
  });

  it('masks secrets of the error output, and puts them back in a patch that is applied', async () => {
    const token = `ghp_${'aB3dE5fG7hJ9'.repeat(3)}`;
    await repo.write('client.js', `const token = "${token}";\nconst port = "80";\nmodule.exports = { token, port };\n`);
    await repo.commit();
    vendor.script({
      answer: request => {
        const line = request.canonical.match(/const token = \\?"(\[masked:\w+:\w+\])/)?.[1] ?? 'nothing masked';
        const patch = `--- a/client.js\n+++ b/client.js\n@@ -1,3 +1,3 @@\n const token = "${line}";\n-const port = "80";\n+const port = 80;\n module.exports = { token, port };\n`;
        return JSON.stringify({ ...finding, patch });
      },
    });
    const stderr = `${project.path('client.js')}:2\nTypeError: port is no number; Authorization: ${token}`;
    const first = await polylogue.call('diagnose', { stderr });
    expect(JSON.stringify(vendor.requests)).not.toContain(token);
    expect(JSON.stringify(first)).not.toContain(token);
    expect(first.patch.diff).toContain('[masked:');
    const { reply, asked } = await callAsking(polylogue, 'diagnose', again(first), () => yes);
    expect(JSON.stringify(asked)).not.toContain(token);
    expect(reply.status).toBe('applied');
    expect(await readFile(project.path('client.js'), 'utf8')).toContain(`"${token}";\nconst port = 80;`);
  });
});

const yes = { action: 'accept', content: { approve: true } } as const;
const again = (reply: Document) => ({ continuation_id: reply.continuation_offer.continuation_id, apply: true });

describe('applying the patch of a diagnosis', () => {
  async function diagnosed(): Promise<Document> {
    const { stderr, diff } = await failed('node-cart');
    says({ ...finding, patch: diff });
    return polylogue.call('diagnose', { stderr });
  }

  it('shows the patch to the user first, keeps the file as it was, and says how to take it back', async () => {
    const first = await diagnosed();
    const before = await readFile(project.path('src/cart.js'), 'utf8');
    const { reply, asked } = await callAsking(polylogue, 'diagnose', again(first), () => yes);
    expect(asked[0]?.message).toContain(first.patch.diff);
    expect(reply).toMatchObject({ status: 'applied', files: [project.path('src/cart.js')] });
    expect(reply.backup.startsWith(join(polylogue.home, 'backups'))).toBe(true);
    expect(await readFile(join(reply.backup, 'before/src/cart.js'), 'utf8')).toBe(before);
    expect(await readFile(project.path('src/cart.js'), 'utf8')).toContain('?.rate ?? 0');
    await repo.git('apply', '-R', join(reply.backup, 'applied.patch'));
    await unchanged();
  });

  it.each([
    ['declines', { action: 'decline' }],
    ['puts it aside', { action: 'cancel' }],
    ['sends the form back unticked', { action: 'accept', content: { approve: false } }],
  ] as const)('changes nothing when the user %s', async (_what, answer) => {
    const first = await diagnosed();
    const { reply } = await callAsking(polylogue, 'diagnose', again(first), () => answer);
    expect(reply).toMatchObject({ isError: true, error: { code: 'SECURITY', class: 'approval' } });
    await unchanged();
  });

  it('asks clients that are asked before the work by a reply, and applies what was approved there', async () => {
    const first = await diagnosed();
    const principal = { owner: 'local', root: polylogue.product.root, client: 'test' };
    const request = { name: 'diagnose', arguments: again(first), principal };
    const { signal } = new AbortController();
    const call = (answers: ReadonlyMap<string, UserAnswer>) =>
      polylogue.product.host.call({ ...request, answers }, signal);
    const asked = await call(new Map());
    expect(asked.document.status).toBe('approval_required');
    const key = asked.questions?.[0]?.key ?? '';
    await unchanged();
    const other = await call(new Map([[`${key}0`, yes]]));
    expect(other.questions?.[0]?.key).toBe(key);
    expect((await call(new Map([[key, { action: 'decline' }]]))).isError).toBe(true);
    await unchanged();
    expect((await call(new Map([[key, yes]]))).document.status).toBe('applied');
    expect(await readFile(project.path('src/cart.js'), 'utf8')).toContain('?.rate ?? 0');
  });

  it('changes nothing where nobody can be asked', async () => {
    const first = await diagnosed();
    const reply = await polylogue.call('diagnose', again(first));
    expect(reply).toMatchObject({ isError: true, error: { code: 'SECURITY', class: 'approval' } });
    await unchanged();
  });

  it('refuses a patch that does not apply any more, before anybody is asked', async () => {
    const first = await diagnosed();
    await repo.write('src/cart.js', 'export const nothing = 0;\n');
    const { reply, asked } = await callAsking(polylogue, 'diagnose', again(first), () => yes);
    expect(reply).toMatchObject({ isError: true, error: { class: 'conflict' } });
    expect(asked).toEqual([]);
  });

  it('is in the audit log whether it was approved or not, and whether it fitted or not', async () => {
    const first = await diagnosed();
    await callAsking(polylogue, 'diagnose', again(first), () => ({ action: 'decline' }));
    await polylogue.call('diagnose', again(first));
    const before = await readFile(project.path('src/cart.js'), 'utf8');
    await repo.write('src/cart.js', 'export const nothing = 0;\n');
    await callAsking(polylogue, 'diagnose', again(first), () => yes);
    await repo.write('src/cart.js', before);
    await callAsking(polylogue, 'diagnose', again(first), () => yes);
    await polylogue.product.close();
    const lines = (await readFile(join(polylogue.home, 'logs/audit.jsonl'), 'utf8')).trimEnd().split('\n');
    const writes = lines.map(line => JSON.parse(line)).filter(({ act }) => act === 'write');
    const files = [project.path('src/cart.js')];
    expect(writes).toMatchObject([
      { decision: 'refused', files, reason: 'SECURITY' },
      { decision: 'refused', files, reason: 'SECURITY' },
      { decision: 'allowed', outcome: 'failed', files, reason: 'INVALID_INPUT_FORMAT' },
      { decision: 'allowed', files },
    ]);
    expect(writes[3]).not.toHaveProperty('reason');
  });

  it('refuses a thread without a patch', async () => {
    says(finding);
    const first = await polylogue.call('diagnose', { stderr: 'boom' });
    const { reply } = await callAsking(polylogue, 'diagnose', again(first), () => yes);
    expect(reply).toMatchObject({ isError: true, error: { validation_errors: [{ field: 'apply' }] } });
  });
});
