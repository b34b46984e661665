import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { canaries } from '../support/canaries.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { runProgram } from './run-program.ts';

let project: TempProject;
beforeAll(async () => {
  project = await tempProject();
});
afterAll(() => project.dispose());

it('secrets on the command line are in no output, log or store of the program', async () => {
  const all = canaries.map(([text]) => text).join('\n\n');
  const [[key]] = [canaries[1]!];
  const home = project.path('home');
  const env = {
    POLYLOGUE_HOME: home,
    LOG_LEVEL: 'debug',
    COMMS_LOG: 'true',
    // The operator's own, whatever it looks like.
    OPENAI_API_KEY: 'OPERATORCANARY',
    OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
  };
  const runs = [
    await runProgram(['ask', all, '--offline'], { cwd: project.root, env }),
    await runProgram(['ask', 'Hi', '--model', key, '--offline'], { cwd: project.root, env }),
    await runProgram(['ask', all, '--model', 'openai:gpt-5.2', '--json'], { cwd: project.root, env }),
  ];
  expect(
    runs.map(({ code }) => code),
    runs[0]?.err,
  ).toEqual([0, 2, 1]);
  const names = await readdir(home, { recursive: true, withFileTypes: true });
  const files = names.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name));
  expect(files.map(path => path.slice(home.length + 1))).toEqual(
    expect.arrayContaining(['logs/comms.jsonl', 'logs/breadcrumbs.jsonl', 'threads.sqlite']),
  );
  const texts = [
    ...runs.flatMap(({ out, err }) => [out, err]),
    ...(await Promise.all(files.map(f => readFile(f, 'latin1')))),
  ];
  expect(texts.join('')).toContain('[masked:');
  for (const [, secret] of canaries) {
    for (const text of texts) {
      const at = text.indexOf(secret);
      expect(at < 0 ? '' : text.slice(Math.max(0, at - 100), at + 100), secret).toBe('');
    }
  }
});
