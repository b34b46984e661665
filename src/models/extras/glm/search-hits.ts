import { isRecord } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';

/** What a search of the web found. */
export interface SearchHit {
  title: string;
  url: string;
  /** The part of the page that matters, as the engine sees it. */
  snippet?: string;
  /** As the engine writes it. */
  date?: string;
  /** Name of the site. */
  site?: string;
}

const longestUrl = 4_000;
const longestTitle = 300;
const longestSnippet = 4_000;
const longestWord = 100;
const mostHits = 200;

/** The hits of a `web_search` or `search_result` array. Those without an address of the web are left out. */
export function hitsOf(rows: unknown): SearchHit[] {
  if (!Array.isArray(rows)) return [];
  return rows.filter(isRecord).slice(0, mostHits).flatMap(hitOf);
}

function hitOf(row: Record<string, unknown>): SearchHit[] {
  const url = textOf(row.link, longestUrl + 1) ?? '';
  if (url.length > longestUrl || !/^https?:\/\//i.test(url)) return [];
  return [
    {
      title: textOf(row.title, longestTitle) ?? safeCut(url, longestTitle),
      url,
      snippet: textOf(row.content, longestSnippet),
      date: textOf(row.publish_date, longestWord),
      site: textOf(row.media, longestWord),
    },
  ];
}

function textOf(value: unknown, most: number): string | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : safeCut(text, most);
}
