import { afterEach, beforeEach, expect } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { geminiAnswers, type StandIn, standIn } from '../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

export interface WorkflowRig {
  call(tool: string, args: Record<string, unknown>): Promise<Document>;
  /** Scripts the experts' answers. */
  answers(...texts: string[]): void;
  /** The next expert refuses for good. */
  fails(): void;
  /** How often a model was asked. */
  asked(): number;
  /** All that the last request held, and its last message. */
  prompt(): string;
  tail(): string;
  restart(): Promise<void>;
  /** The project's folder. */
  root(): string;
}

/** The product with one vendor and a project of two files, anew for every test of a file. */
export function workflowRig(env: Record<string, string> = {}, cli: { gemini?: string } = {}): WorkflowRig {
  let vendor: FakeVendor;
  let project: TempProject;
  let polylogue: TestProduct;
  let installed: StandIn | undefined;
  beforeEach(async () => {
    vendor = await startOpenAi();
    project = await tempProject({ 'a.ts': 'export const alpha = 1;\n', 'b.ts': 'export const beta = 2;\n' });
    const settings = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', ...env };
    if (cli.gemini !== undefined) installed = await standIn('gemini');
    installed?.script(geminiAnswers(cli.gemini ?? ''));
    const childEnv = installed?.env;
    polylogue = await testProduct({ root: project.root, env: settings, ...(childEnv && { childEnv }) });
  });
  afterEach(async () => {
    expect(vendor.violations).toEqual([]);
    await polylogue.close();
    await vendor.close();
    await project.dispose();
    await installed?.dispose();
  });
  const messages = () => vendor.requests.at(-1)?.messages.map(({ text }) => text) ?? [];
  return {
    call: (tool, args) => polylogue.call(tool, args),
    answers: (...texts) => vendor.script(...texts.map(answer => ({ answer }))),
    fails: () => vendor.script({ fault: 'status', status: 400 }),
    asked: () => vendor.requests.length,
    prompt: () => messages().join('\n'),
    tail: () => messages().at(-1) ?? '',
    restart: () => polylogue.restart(),
    root: () => project.root,
  };
}

export const step = (n: number, of: number, more: Record<string, unknown> = {}) => ({
  step: `work of step ${n}`,
  step_number: n,
  total_steps: of,
  next_step_required: n < of,
  findings: `finding ${n}`,
  ...more,
});

/** What every step of a workflow counts. */
export const counters = {
  files_checked: expect.any(Number),
  relevant_files: expect.any(Number),
  relevant_context: expect.any(Number),
  issues_found: expect.any(Number),
  images_collected: 0,
  current_confidence: expect.any(String),
};
