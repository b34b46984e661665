import { describe, expect, it } from 'vitest';
import type { AppEvent } from '../../../src/core/events.ts';
import type { ModelInfo } from '../../../src/core/model.ts';
import { configureProviders } from '../../../src/models/catalogue/connections.ts';
import { createLiveRoster, type LiveRosterParts } from '../../../src/models/catalogue/live-roster.ts';
import { overlay } from '../../../src/models/catalogue/overlay.ts';
import { createListings } from '../../../src/models/catalogue/vendor-lists.ts';
import {
  type Connection,
  defineProvider,
  type LiveModel,
  type ProviderDefinition,
} from '../../../src/models/provider.ts';
import { rankModels } from '../../../src/models/routing/roster.ts';
import { manualClock } from '../../support/clock.ts';
import { modelInfo } from '../scripted-model.ts';

const catalogue: ModelInfo[] = [
  modelInfo({ provider: 'box', id: 'thinker:20b', window: 131_072, reasoning: true, efforts: ['low', 'high'] }),
  modelInfo({ provider: 'box', id: 'plain', window: 131_072, reasoning: true, efforts: ['none', 'high'] }),
  modelInfo({ provider: 'box', id: 'not-pulled' }),
  modelInfo({ provider: 'other', id: 'not-pulled' }),
];

interface More extends Pick<ProviderDefinition, 'models'>, Pick<LiveRosterParts, 'finish'> {
  known?: ModelInfo[];
  listDecides?: boolean;
}

function roster(
  lists: (LiveModel[] | Error)[],
  settings: Record<string, string> = { host: 'x' },
  { known = catalogue, listDecides = true, models, finish }: More = {},
) {
  const events: AppEvent[] = [];
  const clock = manualClock();
  let asked = 0;
  const connection: Connection = {
    languageModel: () => expect.unreachable(),
    providerOptions: () => ({}),
    tailRole: () => 'user',
    async list() {
      const list = lists[Math.min(asked++, lists.length - 1)] ?? [];
      if (list instanceof Error) throw list;
      return list;
    },
  };
  const box = defineProvider({
    id: 'box',
    names: [],
    title: 'Box',
    options: {},
    configured: ({ host }) => host !== undefined,
    connect: async () => connection,
    listDecides,
    ...(models && { models }),
  });
  const listings = createListings({ connection: async () => connection, clock, emit: event => events.push(event) });
  const get = createLiveRoster({
    providers: configureProviders([box], { box: settings }),
    listings,
    catalogue: () => known,
    ...(finish && { finish }),
  });
  const own = async () => (await get()).models.filter(model => model.provider === 'box');
  return {
    get,
    own,
    clock,
    events,
    asked: () => asked,
    listings: () => listings.current({ definition: box, settings }),
  };
}

describe("a vendor's own list", () => {
  it('adds unknown models for chats to be named and takes the windows that it tells', async () => {
    const list = [{ id: 'plain', window: 300_000 }, { id: 'thinker:20b' }, { id: 'new-7' }, { id: 'tts-2' }];
    const { own, listings } = roster([list], { host: 'x' }, { listDecides: false });
    await listings();
    const models = await own();
    expect(models.map(({ id }) => id)).toEqual(['thinker:20b', 'plain', 'not-pulled', 'new-7']);
    expect(models[0]).toMatchObject({ window: 131_072 });
    expect(models[1]).toMatchObject({ window: 300_000, reasoning: true });
    expect(models[2]).toMatchObject({ unlisted: true });
    expect(models[3]).toMatchObject({
      provider: 'box',
      score: 1,
      window: 32_768,
      maxOutput: 8_192,
      windowAssumed: true,
    });
    expect(catalogue[1]).toMatchObject({ window: 131_072 });
  });
});

describe('a provider whose list decides', () => {
  it('serves what it lists with what it tells, and nothing else of the catalogue', async () => {
    const { get } = roster([
      [
        { id: 'thinker:20b', window: 32_768, input: ['text', 'image'], reasoning: true },
        { id: 'plain', window: 4_096, input: ['text'], reasoning: false },
        { id: 'mine:7b', window: 8_192, input: ['text'], reasoning: true },
      ],
    ]);
    const { models, providers } = await get();
    expect(providers).toMatchObject([{ id: 'box', configured: true, listComplete: true }]);
    expect(models.map(({ provider, id }) => `${provider}:${id}`)).toEqual([
      'box:thinker:20b',
      'box:plain',
      'other:not-pulled',
      'box:mine:7b',
    ]);
    expect(models[0]).toMatchObject({ window: 32_768, input: ['text', 'image'], efforts: ['low', 'high'] });
    expect(models[1]).toMatchObject({ window: 4_096, maxOutput: 2_048, reasoning: false, efforts: [] });
    expect(models[3]).toMatchObject({ window: 8_192, maxOutput: 4_096, reasoning: true, efforts: ['none', 'high'] });
    expect(catalogue[0]).toMatchObject({ window: 131_072 });
  });

  it('lists a known model under its tag `latest`, and windows that make no sense change nothing', async () => {
    const { own } = roster([
      [{ id: 'plain:latest' }, { id: 'thinker:20b', window: -1 }, { id: 'mine:7b', window: 4_096 }],
    ]);
    expect((await own()).map(({ id, window }) => `${id} ${window}`)).toEqual([
      'thinker:20b 131072',
      'plain 131072',
      'mine:7b 4096',
    ]);
  });

  it('keeps the catalogue as it is while it is not configured, and asks nothing', async () => {
    const { get, asked } = roster([[]], {});
    expect((await get()).models).toEqual(catalogue);
    expect(asked()).toBe(0);
  });

  it('is asked again after a minute, because models come and go', async () => {
    const { own, clock, asked } = roster([[{ id: 'a' }], [{ id: 'a' }, { id: 'b' }]]);
    expect(await own()).toHaveLength(1);
    await clock.advance(59_000);
    expect(await own()).toHaveLength(1);
    expect(asked()).toBe(1);
    await clock.advance(2_000);
    expect(await own()).toHaveLength(2);
  });

  it('has what it had while it does not answer, and may have more', async () => {
    const { get, own, clock, events } = roster([[{ id: 'a' }], new Error('gone')]);
    await own();
    await clock.advance(61_000);
    expect((await own()).map(({ id }) => id)).toEqual(['a']);
    expect((await get()).providers).toMatchObject([{ listComplete: false }]);
    expect(events).toMatchObject([{ type: 'warning', where: 'models of box' }]);
  });

  it('serves nothing that may be chosen by itself when it never answered', async () => {
    const { own } = roster([new Error('no server')]);
    expect(await own()).toEqual([]);
  });
});

describe("a vendor's list", () => {
  const known = [
    modelInfo({ provider: 'box', id: 'old-1', efforts: ['low'] }),
    modelInfo({ provider: 'box', id: 'dated-2', life: { retired: '2020-01-01' }, status: 'retired' }),
    modelInfo({ provider: 'box', id: 'gone-3' }),
    modelInfo({
      provider: 'maker',
      id: 'star-4',
      window: 70_000,
      maxOutput: 9_000,
      reasoning: true,
      efforts: ['high'],
    }),
  ];
  const live: LiveModel[] = [
    { id: 'old-1', window: 5_000, reasoning: true, efforts: ['none', 'high'] },
    { id: 'dated-2-20251201' },
    { id: 'maker/star-4', efforts: ['none', 'low'], reasoning: true },
    { id: 'new-5', input: ['text', 'image'] },
    { id: 'told-6', window: 200_000, maxOutput: 64_000 },
    { id: 'told-7', window: 200_000, maxOutput: 200_000 },
  ];

  it('is believed: what it leaves out is asked by name alone, a date behind the name is no other model', async () => {
    const { get, listings } = roster([live], { host: 'x' }, { known, listDecides: false });
    await listings();
    const { models } = await get();
    expect(models.map(({ id, unlisted = false }) => [id, unlisted])).toEqual([
      ['old-1', false],
      ['dated-2', false],
      ['gone-3', true],
      ['star-4', false],
      ['dated-2-20251201', false],
      ['maker/star-4', false],
      ['new-5', false],
      ['told-6', false],
      ['told-7', false],
    ]);
    expect(models[0]).toMatchObject({ window: 5_000, efforts: ['none', 'high'], reasoning: true });
    expect(models[5]).toMatchObject({ provider: 'box', maxOutput: 9_000, efforts: ['none', 'low'], score: 1 });
    expect(models[6]).toMatchObject({ input: ['text', 'image'], windowAssumed: true });
    expect(models.slice(7).map(({ maxOutput }) => maxOutput)).toEqual([64_000, 100_000]);
  });

  it('knows a model under its alias but not under another maker, and tells nothing where it has no model for chats', async () => {
    const renamed = [modelInfo({ provider: 'box', id: 'star-4', aliases: ['star-4-latest'] }), ...known.slice(2, 3)];
    const unlisted = async (list: LiveModel[]) => {
      const { own, listings } = roster([list], { host: 'x' }, { known: renamed, listDecides: false });
      await listings();
      return (await own()).filter(model => model.unlisted).map(({ id }) => id);
    };
    expect(await unlisted([{ id: 'star-4-latest' }])).toEqual(['gone-3']);
    expect(await unlisted([{ id: 'models/star-4' }])).toEqual(['gone-3']);
    expect(await unlisted([{ id: 'maker/star-4' }])).toEqual(['star-4', 'gone-3']);
    expect(await unlisted([{ id: 'text-embedding-3-small' }, { id: 'whisper-1' }])).toEqual([]);
  });
});

describe('what the operator says of a server', () => {
  const models = () => [modelInfo({ provider: 'box', id: 'mine', score: 5 })];
  const files = (...entries: object[]) => ({
    finish: (known: readonly ModelInfo[]) => overlay(known, 'box', entries).models,
  });
  const chosen = async (more: More, ...live: string[]) => {
    const { own } = roster([live.map(id => ({ id }))], { host: 'x' }, { known: [], ...more });
    return (await own()).map(({ id, score, unlisted = false }) => [id, unlisted ? 'by name' : score]);
  };

  it('decides which model is asked: what is merely listed is there to be named', async () => {
    const more = { listDecides: false, models };
    expect(await chosen(more, 'mine', 'other')).toEqual([
      ['mine', 5],
      ['other', 1],
    ]);
    expect(await chosen({ ...more, models: () => [] }, 'other')).toEqual([['other', 5]]);
    const { own } = roster([[{ id: 'mine' }, { id: 'other-turbo' }]], { host: 'x' }, { known: [], ...more });
    const [first] = rankModels(await own(), 'fast_response', 'speed', () => true);
    expect(first?.id).toBe('mine');
  });

  it.each([true, false])(
    'is asked by name alone where a file has it and the server has not, listDecides: %s',
    async listDecides => {
      const more = { listDecides, ...files({ model_name: 'big' }, { model_name: 'maker/far', aliases: ['tiny'] }) };
      expect(await chosen({ ...more, models }, 'big:latest', 'tiny')).toEqual(
        expect.arrayContaining([
          ['big', 10],
          ['maker/far', 'by name'],
        ]),
      );
      expect(await chosen({ ...more, models }, 'text-embedding-3-small')).toContainEqual(['maker/far', 10]);
    },
  );

  it('counts in its settings though the server does not list it', async () => {
    expect(await chosen({ listDecides: false, models, ...files({ model_name: 'mine' }) }, 'tiny')).toContainEqual([
      'mine',
      5,
    ]);
  });
});
