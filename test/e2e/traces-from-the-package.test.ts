import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type McpSession, startSession } from '../support/mcp-session.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

let project: TempProject;
let home: TempProject;
let session: McpSession;

beforeAll(async () => {
  home = await tempProject();
  project = await tempProject({
    'a.ts': 'export function inTs() { return inTs(); }',
    'b.tsx': 'function Box() { return <p/>; }\nexport const inTsx = () => <Box/>;',
    'c.js': 'function inJs() { inJs(); }',
    'd.py': 'def in_py():\n    in_py()\n',
    'e.go': 'package e\n\nfunc inGo() { inGo() }\n',
    // Enough for a thread of its own.
    'large/f.ts': Array.from({ length: 3_000 }, (_, at) => `const filler${at} = ${at};`).join('\n'),
  });
  session = await startSession({ root: project.root, home: home.root });
});
afterAll(async () => {
  await session.close();
  await project.dispose();
  await home.dispose();
});

const step = { step: 'Trace it', step_number: 1, total_steps: 2, next_step_required: true, findings: '' };
const target_description = 'inTs() inTsx inJs() in_py() inGo()';

describe('the built program', () => {
  it('finds each grammar beside itself, in its own thread and in another', async () => {
    const args = { ...step, trace_mode: 'precision', target_description };
    for (const relevant_files of [['a.ts', 'b.tsx', 'c.js', 'd.py', 'e.go'], ['.']]) {
      const { isError, error, trace_graph } = await session.call('tracer', { ...args, relevant_files });
      expect(error).toBeUndefined();
      expect(isError).toBe(false);
      expect(trace_graph.edges.map(({ from, to }: { from: string; to: string }) => `${from} → ${to}`).sort()).toEqual(
        ['inGo → inGo', 'inJs → inJs', 'inTs → inTs', 'inTsx → Box', 'in_py → in_py'].sort(),
      );
    }
  });
});
