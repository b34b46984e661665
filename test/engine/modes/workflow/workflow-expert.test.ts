import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { step, workflowRig } from '../../../tools/workflow-rig.ts';

const rig = workflowRig();

/** A picture that vendors take, and whose bytes no other has. */
const picture = (mark: number) => Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, mark]);
const shoot = (name: string, mark: number) => writeFile(join(rig.root(), name), picture(mark));
const debug = (n: number, of: number, more: Record<string, unknown>) => rig.call('debug', step(n, of, more));
const imagesShown = () => rig.prompt().split('[image]').length - 1;

describe('the images of a workflow', () => {
  it('are kept as they were at their step, more than one call takes, each once', async () => {
    for (let n = 1; n <= 7; n++) await shoot(`shot${n}.png`, n);
    const { continuation_id } = await debug(1, 8, { images: ['shot1.png'] });
    await rm(join(rig.root(), 'shot1.png'));
    for (let n = 2; n <= 7; n++) await debug(n, 8, { continuation_id, images: ['shot2.png', `shot${n}.png`] });
    await rig.restart();
    const reply = await debug(8, 8, { continuation_id });
    expect(reply).toMatchObject({ isError: false, investigation_complete: true });
    expect(reply.metadata.warnings).toBeUndefined();
    expect(imagesShown()).toBe(7);
  });

  it('are shown anew where their file changed, and named where they cannot be shown', async () => {
    await shoot('shot.png', 1);
    const { continuation_id } = await debug(1, 3, { images: ['shot.png'] });
    await shoot('shot.png', 2);
    const reply = await debug(2, 3, { continuation_id, images: ['shot.png', 'none.png'] });
    expect(reply.metadata.warnings).toEqual([expect.stringMatching(/^No model will see .*none\.png: File not found/)]);
    await debug(3, 3, { continuation_id });
    expect(imagesShown()).toBe(2);
  });

  it('are judged anew where their file changed, though the step is the same in all words', async () => {
    rig.answers('It is blue.', 'It is green.');
    await shoot('shot.png', 1);
    const { continuation_id } = await debug(1, 1, { images: ['shot.png'] });
    const again = { continuation_id, images: ['shot.png'] };
    expect(JSON.stringify(await debug(1, 1, again))).toContain('It is blue.');
    expect(rig.asked()).toBe(1);
    await shoot('shot.png', 2);
    expect(JSON.stringify(await debug(1, 1, again))).toContain('It is green.');
  });

  it('are shown to an expert who is shown no history', async () => {
    await shoot('shot.png', 1);
    const { continuation_id } = await debug(1, 2, { images: ['shot.png'] });
    await debug(2, 2, { continuation_id, context: 'none' });
    expect(imagesShown()).toBe(1);
  });

  it('are shown once, also where the last step names them again', async () => {
    await shoot('shot.png', 1);
    const { continuation_id } = await debug(1, 2, { images: ['shot.png'] });
    await debug(2, 2, { continuation_id, images: ['shot.png'] });
    expect(imagesShown()).toBe(1);
  });

  it('are shown as far as one message takes them to an expert who is shown no history', async () => {
    for (let n = 1; n <= 6; n++) await shoot(`shot${n}.png`, n);
    const { continuation_id } = await debug(1, 3, { images: ['shot1.png', 'shot2.png', 'shot3.png'] });
    await debug(2, 3, { continuation_id, images: ['shot4.png', 'shot5.png', 'shot6.png'] });
    const reply = await debug(3, 3, { continuation_id, context: 'none' });
    expect(reply.metadata.warnings).toEqual([expect.stringContaining('the newest 5 of 6 images')]);
    expect(imagesShown()).toBe(5);
  });

  it('need an expert that sees, also where the last step has none', async () => {
    await shoot('shot.png', 1);
    const { continuation_id } = await debug(1, 2, { images: ['shot.png'] });
    const reply = await debug(2, 2, { continuation_id, model: 'o3-mini' });
    expect(JSON.stringify(reply.metadata.warnings)).toContain('o3-mini cannot see images.');
  });
});

it('an image that is not there is named under the field that it came in', async () => {
  const gone = join(rig.root(), 'gone.png');
  for (const images of [[gone], ['gone.png'], ['/etc/hosts.png'], ['data:image/tiff;base64,AAAA']]) {
    const { error } = await debug(1, 1, { relevant_files: ['/etc/hosts'], images });
    expect(error.validation_errors.map(({ field }: { field: string }) => field)).toEqual(['relevant_files', 'images']);
  }
});

describe('an expert', () => {
  it.each([
    ['with a question that failed', { relevant_files: ['a.ts'] }, 1],
    ['without an expert', { use_assistant_model: false }, 0],
  ])('judges anew what changed and was sent in between %s', async (_how, between, failures) => {
    rig.answers('It is blue.');
    await shoot('shot.png', 1);
    const { continuation_id } = await debug(1, 1, { images: ['shot.png'], relevant_files: ['a.ts'] });
    const again = { continuation_id, images: ['shot.png'], relevant_files: ['a.ts'] };
    await shoot('shot.png', 2);
    if (failures > 0) rig.fails();
    await debug(1, 1, { ...again, ...between });
    rig.answers('It is green.');
    expect(JSON.stringify(await debug(1, 1, again))).toContain('It is green.');
  });

  it('judges a changed file anew that another tool was sent since', async () => {
    rig.answers('It is blue.', 'I see.', 'It is green.');
    const { continuation_id } = await debug(1, 1, { relevant_files: ['a.ts'] });
    await writeFile(join(rig.root(), 'a.ts'), 'export const alpha = 1_000;\n');
    const files = { absolute_file_paths: [join(rig.root(), 'a.ts')] };
    await rig.call('chat', { prompt: 'Look.', continuation_id, ...files });
    const reply = await debug(1, 1, { continuation_id, relevant_files: ['a.ts'] });
    expect(JSON.stringify(reply)).toContain('It is green.');
  });

  it.each([3, 4])('hears no hypothesis that was replaced by step 3 and then by step %i', async last => {
    const { continuation_id } = await debug(1, 4, {});
    const revise = { continuation_id, revises_step: 2, next_step_required: true };
    await debug(2, 4, { continuation_id, hypothesis: 'the first idea' });
    await debug(3, 4, { ...revise, hypothesis: 'the second idea' });
    const reply = await debug(last, 5, { ...revise, hypothesis: 'the third idea' });
    expect(reply.investigation_status.hypotheses_formed).toBe(1);
    await debug(5, 5, { continuation_id });
    expect(rig.tail()).toContain('the third idea');
    expect(rig.tail()).not.toMatch(/the (first|second) idea/);
  });

  it('that fails leaves the step to be sent again, and the caller is told', async () => {
    const { continuation_id } = await debug(1, 2, {});
    rig.fails();
    const failed = await debug(2, 2, { continuation_id });
    expect(failed).toMatchObject({
      isError: true,
      next_steps: expect.stringMatching(/^Step 2 is not recorded: resend/),
    });
    const again = await debug(2, 2, { continuation_id });
    expect(again.metadata.warnings).toBeUndefined();
  });
});

describe('the reply to a last step', () => {
  it('repeats only so much of the caller’s own words', async () => {
    const { continuation_id } = await debug(1, 2, { findings: 'long '.repeat(8_000) });
    const reply = await debug(2, 2, { continuation_id, findings: 'the end' });
    expect(reply.next_page).toBeUndefined();
    const { work_summary } = reply.complete_investigation;
    expect(work_summary).toMatch(/^Step 1 of 2: [\s\S]*characters left out[\s\S]*Findings: the end$/);
    expect(work_summary.length).toBeLessThanOrEqual(8_000);
    expect(rig.prompt()).toContain('long '.repeat(8_000).trim());
  });

  it('repeats no more of them where no expert was asked', async () => {
    const reply = await debug(1, 1, { findings: 'long '.repeat(8_000), confidence: 'certain' });
    expect(reply.skip_expert_analysis).toBe(true);
    expect(JSON.stringify(reply).length).toBeLessThan(20_000);
  });

  it('says that files were left out, where they were', async () => {
    const relevant_files = ['a.ts', '/etc/passwd'];
    const { file_context } = await debug(1, 1, { relevant_files });
    expect(file_context.context_optimization).toMatch(/content of 1 files .* Others were .* left out: metadata\.files/);
    const whole = await debug(1, 1, { relevant_files: ['a.ts'] });
    expect(whole.file_context.context_optimization).not.toContain('left out');
  });

  it('sends nobody to fix what the expert found no bug in', async () => {
    rig.answers('{"status": "no_bug_found", "summary": "It works."}', '{"status": "analysis_complete"}');
    const { expert_analysis, next_steps } = await debug(1, 1, { findings: 'odd' });
    expect(expert_analysis.status).toBe('no_bug_found');
    expect(next_steps).not.toContain('fix');
    expect((await debug(1, 1, { findings: 'odder' })).next_steps).toContain('minimal fix');
  });

  it('names directories among the files as they are called', async () => {
    const reply = await debug(1, 2, { relevant_files: ['src/shop/', 'a.ts'] });
    expect(reply.file_context.note).toBe('Files noted: shop, a.ts');
  });
});

describe('a fork in the middle of a run', () => {
  it('is told what it lacks, and is not sent back to the original', async () => {
    const { continuation_id } = await debug(1, 4, { relevant_files: ['a.ts'] });
    await debug(2, 4, { continuation_id });
    const fork = await rig.call('threads', { action: 'fork', continuation_id, turn: 1 });
    const reply = await debug(2, 4, { continuation_id: fork.continuation_id });
    expect(reply.metadata.warnings).toEqual([expect.stringMatching(/^This fork has the text of the earlier steps/)]);
  });
});
