import { describe, expect, it } from 'vitest';
import { hashOf, hour, start, threadWith } from '../../contracts/store-fixtures.ts';
import { seededRandom } from '../../support/random.ts';
import { generatedThread } from './generated-thread.ts';
import { here, recordsOf, sealedFile, there, transferRig } from './transfer-rig.ts';

// biome-ignore lint/suspicious/noExplicitAny: records as a forger makes them
type Records = Record<string, any>[];

const secret = `ghp_${'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2'}`;

async function file(): Promise<string> {
  const rig = transferRig();
  const { id } = await generatedThread(rig.store, seededRandom(5));
  return rig.exported(id);
}

/** The file with records that were changed by somebody who knows how to make checksums. */
async function forged(change: (records: Records) => void): Promise<string> {
  const records = recordsOf(await file());
  change(records);
  return sealedFile(records);
}

const of = (records: Records, kind: string) => records.find(record => record.kind === kind)!;

describe('a file that is not what was exported', () => {
  it('is refused with the number of its first broken line, and nothing of it is stored', async () => {
    const lines = (await file()).trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(8);
    const broken: [string, string[], number][] = [
      ['a changed word', lines.with(4, lines[4]!.replace(/"role":"\w+"/, '"role":"user "')), 5],
      ['a line left out', lines.toSpliced(3, 1), 4],
      ['two lines changed about', lines.with(3, lines[4]!).with(4, lines[3]!), 4],
      ['a line twice', lines.toSpliced(3, 0, lines[3]!), 5],
      ['the end missing', lines.slice(0, -1), lines.length],
      ['half of the last line', lines.with(-1, lines.at(-1)!.slice(0, 20)), lines.length],
      ['an empty line', lines.toSpliced(5, 0, ''), 6],
      ['more behind the end', [...lines, lines.at(-1)!], lines.length + 1],
    ];
    for (const [what, changed, line] of broken) {
      const rig = transferRig();
      await expect(rig.imported(`${changed.join('\n')}\n`), what).rejects.toMatchObject({
        kind: 'input',
        message: expect.stringContaining(`Line ${line} of the file is broken`),
        details: { code: 'INVALID_INPUT_FORMAT', class: 'broken_file', data: { line } },
      });
      expect(await rig.store.list({ owner: there.owner, limit: 9, now: start })).toEqual([]);
    }
  });

  it('gets no text that the store has of somebody else by its hash alone', async () => {
    const rig = transferRig();
    const { id } = await generatedThread(rig.store, seededRandom(5));
    const whole = await rig.exported(id);
    const texts = recordsOf(whole).filter(({ kind }) => kind === 'blob');
    expect(texts.length).toBeGreaterThan(1);
    const bare = recordsOf(whole)
      .filter(({ kind }) => kind !== 'blob')
      .map(record => (record.kind === 'end' ? { ...record, blobs: 0 } : record));
    const { thread, missing } = await rig.imported(sealedFile(bare), { asNew: true });
    expect(missing).toBe(texts.length);
    const back = await rig.exported(thread.id, 'jsonl', there);
    expect(recordsOf(back).filter(({ kind }) => kind === 'blob')).toEqual([]);
  });

  it('is taken with the line ends of another system, and empty lines at its end', async () => {
    const whole = await file();
    const rig = transferRig();
    const { thread } = await rig.imported(`${whole.replaceAll('\n', '\r\n')}\r\n\n`);
    expect(await rig.exported(thread.id, 'jsonl', there)).toBe(whole);
  });

  it('is refused when a newer program wrote it', async () => {
    const newer = sealedFile([
      { format: 'polylogue.thread', version: 2 },
      { kind: 'what', ever: 1 },
    ]);
    await expect(transferRig().imported(newer)).rejects.toMatchObject({
      message: 'The file is of version 2 of the format; this program reads up to 1.',
      details: { class: 'newer_version', next: expect.stringContaining('Update') },
    });
  });

  it.each([
    ['Markdown', '# A thread\n'],
    ['nothing', ''],
    ['another JSON', '{"a":1}\n'],
    ['a list', '[]\n'],
    ['bytes', Buffer.from([0xff, 0xfe, 0, 0xff])],
    ['a line without an end', 'x'.repeat(100_000)],
  ])('is refused when it is %s', async (_what, text) => {
    await expect(transferRig().imported(text)).rejects.toMatchObject({ kind: 'input' });
  });

  it.each<[string, (records: Records) => void, RegExp]>([
    [
      'an id that is a path',
      records => {
        of(records, 'head').head.id = '../../etc/passwd';
      },
      /id: is no UUID/,
    ],
    [
      'an owner',
      records => {
        of(records, 'head').head.owner = 'root';
      },
      /owner/,
    ],
    [
      'a turn of the future',
      records => {
        of(records, 'turn').turn.seq = 7;
      },
      /does not follow/,
    ],
    [
      'a first turn behind more turns than can be counted',
      records => {
        of(records, 'head').head.startSeq = 2 ** 53 - 4;
      },
      /startSeq/,
    ],
    ['a hole between turns', records => void records.splice(2, 1), /does not follow/],
    [
      'a role of its own',
      records => {
        of(records, 'turn').turn.role = 'system';
      },
      /role/,
    ],
    [
      'an exchange id that is none',
      records => {
        of(records, 'turn').turn.exchange = "x' OR 1=1";
      },
      /exchange/,
    ],
    [
      'a name with a line break',
      records => {
        of(records, 'turn').turn.toolName = 'chat]\n[turn 9';
      },
      /toolName/,
    ],
    [
      'a number that is none',
      records => {
        of(records, 'turn').turn.tokens = 'many';
      },
      /tokens/,
    ],
    [
      'a negative cost',
      records => {
        of(records, 'head').head.totals.costUsd = -1;
      },
      /costUsd/,
    ],
    [
      'a text that is not its hash',
      records => {
        of(records, 'blob').text += ' ';
      },
      /hash/,
    ],
    [
      'a hash that is none',
      records => {
        of(records, 'blob').sha256 = 'A'.repeat(64);
      },
      /sha256/,
    ],
    [
      'a text nobody refers to',
      records => void records.splice(-1, 0, { kind: 'blob', sha256: '0'.repeat(64), text: 'x' }),
      /refers/,
    ],
    ['a kind of its own', records => void records.splice(2, 0, { kind: 'run', command: 'rm' }), /broken/],
    ['two heads', records => void records.splice(2, 0, records[1]!), /does not belong here/],
    [
      'wrong totals at the end',
      records => {
        of(records, 'end').turns = 0;
      },
      /numbers of records/,
    ],
    [
      'a member more',
      records => {
        of(records, 'turn').turn.extra = 1;
      },
      /extra/,
    ],
    [
      'the name of a prototype for a tool',
      records => void records.splice(-1, 0, { kind: 'workflow', tool: '__proto__', state: {} }),
      /broken/,
    ],
    [
      'a summary of turns that are not there',
      records =>
        void records.splice(-1, 0, {
          kind: 'compaction',
          compaction: { window: 1, upToSeq: 9999, summary: '', trims: [], createdAt: 0 },
        }),
      /broken/,
    ],
  ])('is refused for %s, however right its checksums are', async (_what, change, told) => {
    const rig = transferRig();
    await expect(rig.imported(await forged(change))).rejects.toMatchObject({
      kind: 'input',
      message: expect.stringMatching(told),
    });
    expect(await rig.store.list({ owner: there.owner, limit: 9, now: start })).toEqual([]);
  });

  it('is refused for depth without end', async () => {
    const levels = 200_000;
    const deep = `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
    const records: (object | string)[] = recordsOf(await file());
    records[1] = JSON.stringify(records[1]).replace(/"initialContext":[\s\S]*$/, `"initialContext":${deep}}}`);
    await expect(transferRig().imported(sealedFile(records))).rejects.toMatchObject({ details: { data: { line: 2 } } });
  });

  it('changes no prototype, and keeps such names as the data they are', async () => {
    const text = await forged(records => {
      of(records, 'head').head.initialContext = JSON.parse(
        '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
      );
    });
    const rig = transferRig();
    const { thread } = await rig.imported(text);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(Object.keys(thread.initialContext)).toEqual(['__proto__', 'constructor']);
    expect(await rig.exported(thread.id, 'jsonl', there)).toBe(text);
  });

  it('has its secrets masked, also in the texts that turns refer to, and is whole all the same', async () => {
    const foreign = transferRig();
    const { id } = await threadWith(foreign.store, ['a', 'b']);
    const [turn] = (await foreign.threads.find(id, here)).turns;
    const clear = `token = "${secret}"\n`;
    const records = recordsOf(await foreign.exported(id)) as Records;
    const base = hashOf(clear);
    of(records, 'turn').turn = {
      ...turn,
      content: `my key is ${secret}`,
      files: [{ path: '/p/a.ts', form: 'full', size: 1, mtimeMs: 1, lines: 1, sha256: base, base }],
    };
    of(records, 'head').head.initialContext = { prompt: [secret] };
    Object.assign(of(records, 'end'), { blobs: 1 });
    records.splice(
      -1,
      0,
      { kind: 'workflow', tool: 'debug', state: { note: secret } },
      { kind: 'blob', sha256: base, text: clear },
    );
    const rig = transferRig();
    const { thread, masked } = await rig.imported(sealedFile(records));
    expect(Object.values(masked).reduce((sum, count) => sum + count, 0)).toBe(4);
    const again = await rig.exported(thread.id, 'jsonl', there);
    expect(again).not.toContain(secret);
    expect(again.match(/\[masked:/g)).toHaveLength(4);
    await transferRig().imported(again);
  });

  it('that changes while it is read leaves nothing behind', async () => {
    const text = await file();
    const other = await forged(records => {
      of(records, 'head').head.title = 'Another';
    });
    const rig = transferRig();
    let reading = 0;
    const open = async function* () {
      yield Buffer.from(reading++ === 0 ? text : other);
    };
    await expect(rig.imported('', { open })).rejects.toThrow(/changed while it was read/);
    expect(await rig.store.list({ owner: there.owner, limit: 9, now: start })).toEqual([]);
  });

  it('leaves nothing behind when the store fails half-way, and can be imported again', async () => {
    const text = await file();
    const rig = transferRig();
    const real = rig.store.commit;
    let commits = 0;
    Object.assign(rig.store, {
      commit: (...args: Parameters<typeof real>) =>
        ++commits === 3 ? Promise.reject(new Error('full')) : real(...args),
    });
    await expect(rig.imported(text)).rejects.toThrow('full');
    expect(await rig.store.list({ owner: there.owner, limit: 9, now: start })).toEqual([]);
    const { thread } = await rig.imported(text);
    expect(await rig.exported(thread.id, 'jsonl', there)).toBe(text);
  });

  it('says that its thread is not whole while it is imported, and stops when the call is cancelled', async () => {
    const text = await file();
    const rig = transferRig();
    const cancel = new AbortController();
    const titles: string[] = [];
    const onProgress = async (stage: string, line: number) => {
      if (stage !== 'writing' || line !== 6) return;
      const [head] = await rig.store.list({ owner: there.owner, limit: 1, now: start });
      titles.push(head?.title ?? '');
      cancel.abort();
    };
    const open = () => slowly(text);
    await expect(rig.imported('', { open, onProgress, signal: cancel.signal })).rejects.toMatchObject({
      kind: 'cancelled',
    });
    expect(titles[0]).toMatch(/import not finished/);
    expect(await rig.store.list({ owner: there.owner, limit: 9, now: start })).toEqual([]);
  });

  it('is refused when its thread was used in the future, but for clocks that are a little ahead', async () => {
    const at = (time: number) =>
      forged(records => {
        of(records, 'head').head.updatedAt = time;
      });
    await expect(transferRig().imported(await at(start + 48 * hour))).rejects.toThrow(/future/);
    const rig = transferRig();
    const ahead = await at(start + 2 * hour);
    const { thread } = await rig.imported(ahead);
    expect(await rig.exported(thread.id, 'jsonl', there)).toBe(ahead);
  });
});

async function* slowly(text: string): AsyncGenerator<Uint8Array> {
  for (const line of text.split(/(?<=\n)/)) {
    await new Promise(resolve => setImmediate(resolve));
    yield Buffer.from(line);
  }
}
