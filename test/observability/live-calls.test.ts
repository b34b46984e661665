import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { createLiveCallsSink } from '../../src/observability/live-calls.ts';

const at = (event: AppEvent, time = 1) => ({ at: time, event });
const begin = (reqId: string, owner = 'alice'): AppEvent => ({
  type: 'call.start',
  reqId,
  tool: 'chat',
  owner,
  client: 'c',
});
const stage = (reqId: string, text = 'asking'): AppEvent => ({ type: 'call.stage', reqId, tool: 'chat', stage: text });
const end = (reqId: string): AppEvent => ({ type: 'call.end', reqId, tool: 'chat', status: 'success', elapsedMs: 5 });

describe('the calls of this process', () => {
  it('are known with their events from beginning to end, those under way first', async () => {
    const sink = createLiveCallsSink();
    await sink.write([at(begin('a'), 1), at(stage('a'), 2), at(end('a'), 3), at(begin('b'), 2), at(stage('b'), 4)]);
    const [running, ended] = sink.calls.list('alice');
    expect(running).toMatchObject({ reqId: 'b', tool: 'chat', client: 'c', startedAt: 2, omitted: 0 });
    expect(running?.endedAt).toBeUndefined();
    expect(ended).toMatchObject({ reqId: 'a', endedAt: 3 });
    expect(ended?.events.map(({ event }) => event.type)).toEqual(['call.start', 'call.stage', 'call.end']);
  });

  it('say what they are about, in the newest words', async () => {
    const sink = createLiveCallsSink();
    const about = { text: 'Why?', workspace: '/w' };
    await sink.write([at(begin('a')), at({ type: 'call.about', reqId: 'a', tool: 'chat', ...about })]);
    expect(sink.calls.find('alice', 'a')?.about).toEqual(about);
    await sink.write([at({ type: 'call.about', reqId: 'a', tool: 'chat', ...about, thread: 't', seq: 4 })]);
    expect(sink.calls.find('alice', 'a')?.about).toEqual({ ...about, thread: 't', seq: 4 });
  });

  it('are each owner’s own, to list, to find and to hear of', async () => {
    const sink = createLiveCallsSink();
    const heard: string[] = [];
    const gone = new AbortController();
    sink.calls.subscribe('alice', reqId => heard.push(reqId), gone.signal);
    await sink.write([
      at(begin('a')),
      at(begin('m', 'mallory')),
      at(stage('m')),
      at({ type: 'warning', where: 'x', message: 'y' }),
    ]);
    expect(sink.calls.list('alice').map(({ reqId }) => reqId)).toEqual(['a']);
    expect(sink.calls.find('alice', 'm')).toBeUndefined();
    expect(sink.calls.find('mallory', 'm')?.events).toHaveLength(2);
    expect(heard).toEqual(['a']);
    gone.abort();
    await sink.write([at(stage('a'))]);
    expect(heard).toEqual(['a']);
    sink.calls.subscribe('alice', reqId => heard.push(reqId), gone.signal);
    await sink.write([at(stage('a'))]);
    expect(heard).toEqual(['a']);
  });

  it('are forgotten when there are too many, the oldest that ended first', async () => {
    const sink = createLiveCallsSink({ calls: 3, characters: 1e9, eventsOfCall: 10 });
    await sink.write([
      at(begin('slow')),
      at(begin('a')),
      at(end('a')),
      at(begin('b')),
      at(end('b')),
      at(begin('c')),
      at(end('c')),
    ]);
    expect(
      sink.calls
        .list('alice')
        .map(({ reqId }) => reqId)
        .toSorted(),
    ).toEqual(['b', 'c', 'slow']);
    await sink.write(['d', 'e', 'f', 'g'].map(reqId => at(begin(reqId))));
    expect(sink.calls.list('alice')).toHaveLength(3);
  });

  it('take no more room than they are given, and keep the newest event of a talkative one', async () => {
    const sink = createLiveCallsSink({ calls: 100, characters: 2_000, eventsOfCall: 4 });
    await sink.write([at(begin('a')), ...Array.from({ length: 9 }, (_, index) => at(stage('a', `step ${index}`)))]);
    const call = sink.calls.find('alice', 'a');
    expect(call?.events).toHaveLength(4);
    expect(call?.omitted).toBe(6);
    expect(call?.events.at(-1)?.event).toMatchObject({ stage: 'step 8' });
    await sink.write(
      Array.from({ length: 20 }, (_, index) => [
        at(begin(`b${index}`)),
        at(stage(`b${index}`, 'x'.repeat(300))),
      ]).flat(),
    );
    const size = JSON.stringify(sink.calls.list('alice').flatMap(({ events }) => events)).length;
    expect(size).toBeLessThan(2_600);
    expect(size).toBeGreaterThan(500);
  });
});
