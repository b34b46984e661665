import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { clientFrame, closeCodes, ops } from '../../../src/server/websocket/protocol.ts';
import { frameError, serverFrame } from '../../support/frame-schema.ts';

const text = readFileSync(new URL('../../../docs/frame-protocol.md', import.meta.url), 'utf8');

/** The messages of the page that one side sends. */
function examples(side: 'client' | 'server'): { op: string }[] {
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`json ${side}\\n([\\s\\S]*?)^\`\`\``, 'gm'))];
  return blocks.flatMap(([, block = '']) =>
    block
      .trim()
      .split('\n')
      .map(line => JSON.parse(line)),
  );
}

describe('the page about the frame protocol', () => {
  it('has a right example of each message', () => {
    const [sent, received] = [examples('client'), examples('server')];
    for (const frame of sent) expect(clientFrame.safeParse(frame)).toMatchObject({ success: true });
    for (const frame of received) expect(serverFrame.safeParse(frame)).toMatchObject({ success: true });
    expect(new Set(sent.map(({ op }) => op))).toEqual(ops);
    const all = serverFrame.options.map(({ shape }) => shape.op.value);
    expect(new Set(received.map(({ op }) => op))).toEqual(new Set(all));
  });

  it('names each error and close code', () => {
    for (const code of frameError.shape.code.options) expect(text).toContain(`| \`${code}\` |`);
    for (const code of [...Object.values(closeCodes), 1000, 1001, 1003, 1009, 1013])
      expect(text).toContain(String(code));
  });
});
