import {
  Client,
  type ElicitResult,
  InMemoryTransport,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import type { ToolHost } from '../../../src/core/tool-host.ts';
import { createMcpServer } from '../../../src/server/mcp/mcp.ts';
import { realClock } from '../../support/clock.ts';
import { fixtureHost } from '../../support/conformance/fixture-host.ts';
import { httpMount } from '../../support/conformance/http-mount.ts';
import { eraVersions } from '../../support/mcp-session.ts';

const listing = fixtureHost().list()[0]!;

/** A host with one tool that asks before it does anything, and counts what it did. */
function askingHost(): { host: ToolHost; done: string[] } {
  const done: string[] = [];
  const host: ToolHost = {
    ...fixtureHost(),
    list: () => [{ ...listing, name: 'erase' }],
    async call({ answers }) {
      const answer = answers?.get('sure');
      const text = answer ? `${answer.action} ${JSON.stringify('content' in answer && answer.content)}` : 'not asked';
      const reply = { isError: false, document: { text }, text, markdown: true as const };
      if (answer || !answers) {
        done.push(text);
        return reply;
      }
      const schema = { type: 'object' as const, properties: { sure: { type: 'boolean' as const } } };
      return { ...reply, questions: [{ key: 'sure', message: 'Sure?', schema }] };
    },
  };
  return { host, done };
}

type Answer = { action: 'accept' | 'decline' | 'cancel' | 'nonsense'; content?: Record<string, boolean> } | 'fails';

/** A client that answers so, or one whose user cannot be asked. */
function clientOf(era: keyof typeof eraVersions, answer: Answer | undefined, asked: string[]): Client {
  const capabilities = answer ? { elicitation: {} } : {};
  const mode = era === 'modern' ? { pin: eraVersions.modern } : era;
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode } });
  if (answer) {
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params.message);
      if (answer === 'fails') throw new Error('Elicitation is not available in this mode');
      return answer as ElicitResult;
    });
  }
  return client;
}

async function erase(era: keyof typeof eraVersions, answer?: Answer) {
  const { host, done } = askingHost();
  const asked: string[] = [];
  const client = clientOf(era, answer, asked);
  const closing: (() => Promise<void>)[] = [() => client.close()];
  if (era === 'modern') {
    const mount = await httpMount(host);
    closing.push(() => mount.close());
    await client.connect(new StreamableHTTPClientTransport(new URL(mount.url)));
  } else {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const principal = { owner: 'local', root: '/' };
    const options = { host, version: '0', instructions: 'x', principal, clock: realClock() };
    await createMcpServer(options, 'legacy').connect(far);
    await client.connect(near);
  }
  const { content } = await client.callTool({ name: 'erase', arguments: {} });
  for (const close of closing) await close();
  return { text: content[0]?.type === 'text' && content[0].text, asked, done };
}

describe.each(['legacy', 'modern'] as const)('a tool that asks first, over the %s era', era => {
  it('is called again with the answer of the user, whatever it is', async () => {
    const answers = [
      { action: 'accept', content: { sure: true } },
      { action: 'decline' },
      { action: 'cancel' },
    ] as const;
    for (const answer of answers) {
      const { text, asked, done } = await erase(era, answer);
      expect(asked).toEqual(['Sure?']);
      expect(text).toBe(`${answer.action} ${JSON.stringify('content' in answer && answer.content)}`);
      expect(done).toEqual([text]);
    }
  });

  it('knows where there is no user to ask', async () => {
    expect(await erase(era)).toEqual({ text: 'not asked', asked: [], done: ['not asked'] });
  });
});

it('takes a form that a client of 2025 cannot show, and an answer that is none, for one that was put aside', async () => {
  for (const answer of ['fails', { action: 'nonsense' }] as const) {
    expect(await erase('legacy', answer)).toEqual({ text: 'cancel false', asked: ['Sure?'], done: ['cancel false'] });
  }
});
