import { readdir, readFile, rename, rm } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createRotatingLog, type LogRules } from '../../src/observability/file-logs.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const projects: TempProject[] = [];
const logs: ReturnType<typeof createRotatingLog>[] = [];
afterEach(async () => {
  await Promise.all(logs.splice(0).map(log => log.close()));
  await Promise.all(projects.splice(0).map(project => project.dispose()));
});

const start = Date.UTC(2030, 0, 1);
const hour = 3_600_000;

async function logOf(rules: Partial<LogRules>, onPutAside?: () => Promise<void>) {
  const project = await tempProject();
  projects.push(project);
  const folder = project.path('logs');
  const open = () => {
    const log = createRotatingLog('seen', { folder, ...rules }, onPutAside);
    logs.push(log);
    return log;
  };
  return { folder, open, log: open(), read: (name: string) => readFile(`${folder}/${name}`, 'utf8') };
}

const record = (hours: number, message: string) => ({ at: start + hours * hour, fields: { message } });

describe('a rotating log', () => {
  it('puts a file aside when its first line is too old, also one that an earlier process began', async () => {
    const { log, open, read } = await logOf({ maxAgeMs: 24 * hour });
    await log.append([record(0, 'first')]);
    await log.append([record(24, 'a day later')]);
    expect(await read('seen.jsonl')).toMatch(/first[\s\S]*a day later/);
    await open().append([record(25, 'the next file')]);
    expect(await read('seen.jsonl')).not.toContain('first');
    expect(await read('seen.jsonl.1')).toContain('a day later');
    await log.append([record(26, 'still the next file')]);
    expect(await read('seen.jsonl')).toMatch(/the next file[\s\S]*still/);
    expect(await read('seen.jsonl.1')).not.toContain('the next file');
  });

  it('keeps a file whose first line tells no time until it is full', async () => {
    const project = await tempProject({ 'logs/seen.jsonl': 'not ours\n' });
    projects.push(project);
    const log = createRotatingLog('seen', { folder: project.path('logs'), maxAgeMs: hour });
    logs.push(log);
    await log.append([record(0, 'first')]);
    expect(await readFile(project.path('logs/seen.jsonl'), 'utf8')).toMatch(/^not ours\n.*first/);
  });

  it('keeps no old file when none is wanted, and tells of each that was put aside', async () => {
    let told = 0;
    const { log, folder } = await logOf({ maxBytes: 1, keep: 0 }, async () => void told++);
    for (let index = 0; index < 3; index++) await log.append([record(index, `number ${index}`)]);
    expect(await readdir(folder)).toEqual(['seen.jsonl']);
    expect(told).toBe(2);
  });

  it('is kept open, and goes on in the file that its name leads to when another process rotated or removed it', async () => {
    const { log, open, read, folder } = await logOf({ maxBytes: 1 });
    const other = open();
    await log.append([record(0, 'one')]);
    await other.append([record(0, 'two')]);
    await log.append([record(0, 'three')]);
    await rm(`${folder}/seen.jsonl`);
    await log.append([record(0, 'four')]);
    await log.close();
    await log.append([record(0, 'five')]);
    const names = ['seen.jsonl', 'seen.jsonl.1', 'seen.jsonl.2', 'seen.jsonl.3'];
    const texts = await Promise.all(names.map(read));
    expect(texts.map(text => /"message":"(\w+)"/.exec(text)?.[1])).toEqual(['five', 'four', 'two', 'one']);
  });

  it('goes on in the file that its name leads to a second after another program renamed it', async () => {
    const { log, read, folder } = await logOf({});
    await log.append([record(0, 'one')]);
    await rename(`${folder}/seen.jsonl`, `${folder}/seen.jsonl.old`);
    const second = 1 / 3_600;
    await log.append([record(second, 'two')]);
    await log.append([record(second, 'three')]);
    expect(await read('seen.jsonl.old')).toMatch(/^[^\n]*one[^\n]*\n$/);
    expect(await read('seen.jsonl')).toMatch(/two[\s\S]*three/);
  });

  it('loses no line of two who write to one file at once, and mixes none', async () => {
    const { log, open, read } = await logOf({});
    const other = open();
    const messages = Array.from({ length: 100 }, (_, n) => `line ${n} ${'x'.repeat(200)}`);
    await Promise.all(
      [log, other].map(async each => {
        for (const message of messages) await each.append([record(0, message)]);
      }),
    );
    const lines = (await read('seen.jsonl'))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).message);
    expect(lines.toSorted()).toEqual([...messages, ...messages].toSorted());
  });

  it('writes nothing for no records', async () => {
    const { log, folder } = await logOf({});
    await log.append([]);
    await expect(readdir(folder)).rejects.toThrow('ENOENT');
  });
});
