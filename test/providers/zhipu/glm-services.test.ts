import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createZhipuWebSearch, zhipu } from '../../../src/providers/zhipu/zhipu.ts';
import { type FakeZhipu, startZhipu } from '../../support/vendors/start-zhipu.ts';

const { signal } = new AbortController();
let vendor: FakeZhipu;

beforeEach(async () => {
  vendor = await startZhipu();
});
afterEach(async () => {
  await vendor.close();
});

const door = (apiKey = 'test-key') => zhipu.endpoint({ apiKey, baseUrl: vendor.url }, () => 0);
const hit = {
  title: 'Rain',
  content: 'It rained.',
  link: 'https://news.example/1',
  media: 'News',
  icon: '',
  refer: 'r',
  publish_date: '',
};

describe("GLM's search by itself", () => {
  it('is asked as it is documented, and its hits are told plainly', async () => {
    vendor.hits.push(hit, { ...hit, link: 'file:///etc/passwd' });
    const search = createZhipuWebSearch(door(), 'search-prime');
    const found = await search.search(
      { query: 'rain today', count: 5, recency: 'oneDay', domain: 'news.example' },
      signal,
    );
    expect(found).toEqual([{ title: 'Rain', url: hit.link, snippet: 'It rained.', date: undefined, site: 'News' }]);
    expect(vendor.asked).toMatchObject([
      {
        path: '/web_search',
        headers: { 'accept-language': 'en-US,en' },
        body: {
          search_engine: 'search-prime',
          search_query: 'rain today',
          count: 5,
          search_recency_filter: 'oneDay',
          search_domain_filter: 'news.example',
        },
      },
    ]);
  });

  it('is asked at BigModel as the engines there want it', async () => {
    vendor.hits.push(hit, { ...hit, link: 'https://news.example/2' }, { ...hit, link: 'https://news.example/3' });
    const search = createZhipuWebSearch(door(), 'search_pro_sogou');
    expect(await search.search({ query: 'rain', count: 2 }, signal)).toHaveLength(2);
    expect(vendor.asked).toMatchObject([
      { body: { search_engine: 'search_pro_sogou', search_intent: false, count: 10 } },
    ]);
    await search.search({ query: 'rain', count: 2, engine: 'search-prime' }, signal);
    expect(vendor.asked[1]?.body).toMatchObject({ count: 2 });
    expect(vendor.asked[1]?.body).not.toHaveProperty('search_intent');
  });

  it('fails typed', async () => {
    await expect(
      createZhipuWebSearch(door('wrong'), 'search-prime').search({ query: 'x', count: 1 }, signal),
    ).rejects.toMatchObject({
      kind: 'model',
      details: { class: 'auth', provider: 'zhipu', next: expect.stringContaining('ZHIPUAI_API_KEY') },
    });
    await expect(
      createZhipuWebSearch(door(), 'nonsense').search({ query: 'x', count: 1 }, signal),
    ).rejects.toMatchObject({ details: { class: 'bad_request' } });
  });
});
