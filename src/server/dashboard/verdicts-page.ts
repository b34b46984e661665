import type { PanelistRecord, StoredTurn, Thread } from '../../core/thread.ts';
import { dollars } from '../../core/usage.ts';
import { share } from './chart.ts';
import type { DashboardData } from './data.ts';
import { type Child, duration, html, line, type Markup, pill, plural, type Tone } from './html.ts';
import type { Page, Visit } from './page.ts';
import { cutTo, renderMarkdown } from './turn-parts.ts';

const maxVerdictChars = 12_000;

interface Panel {
  /** Turn that it ends with. */
  seq: number;
  responses: { record: PanelistRecord; text: string; seq: number }[];
  /** What they came to; empty where the caller brings it together himself. */
  summary: string;
  /** Asked one by one, each in a turn of its own. */
  isByStep: boolean;
}

export function verdictsPage({ data }: Visit, thread: Thread): Page {
  const panels = panelsOf(thread);
  return {
    title: 'Compare verdicts',
    place: '/threads',
    body: html`<p class="small"><a class="bidi" href="/threads/${thread.id}">← ${line(thread.title, 80) || 'Thread'}</a></p>
<h1>Compare verdicts</h1>
${panels.length > 0 ? panels.map(panel => panelPart(data, thread, panel)) : html`<p class="lede">This thread has no consensus. Use the <code>consensus</code> tool to run one.</p>`}`,
  };
}

function panelPart({ segments }: DashboardData, thread: Thread, { seq, responses, summary }: Panel): Markup {
  return html`<section id="panel-${seq}" aria-labelledby="panel-${seq}-name"><h2 id="panel-${seq}-name">${plural(responses.length, 'model')}, up to <a href="/threads/${thread.id}?from=${seq}#turn-${seq}">turn ${seq}</a> ${tally(responses)}</h2>
${summary !== '' && html`<div class="card summary">${renderMarkdown(segments, summary)}</div>`}
<div class="columns">${responses.map(heard => verdict(segments, thread, heard))}</div></section>`;
}

function tally(responses: Panel['responses']): Child {
  const positions = responses.flatMap(({ record }) => record.position ?? []);
  const counted = Map.groupBy(positions, position => position);
  return [...counted].map(
    ([position, all]) => html`${pill(toneOf(position), `${all.length} × ${line(position, 40)}`)} `,
  );
}

function verdict(segments: DashboardData['segments'], thread: Thread, heard: Panel['responses'][number]): Markup {
  const { record, text, seq } = heard;
  const { expert, model, stance, status, position, confidence, latencyMs, costUsd } = record;
  const cut = cutTo(text, maxVerdictChars, `/threads/${thread.id}/turns/${seq}`);
  const numbers = [latencyMs !== undefined && duration(latencyMs), costUsd !== undefined && dollars(costUsd)];
  return html`<article class="card verdict"><header><h3>Expert ${line(expert, 4)}: ${line(model, 120)}</h3>
<div class="row"><span class="tag">stance: ${line(stance, 40)}</span>${position !== undefined && pill(toneOf(position), line(position, 60))}${status !== 'success' && pill('bad', status === 'error' ? 'failed' : 'not asked')}</div>
${confidence !== undefined && html`<div><span class="small soft">Confidence ${confidence} of 10</span>${share(confidence / 10)}</div>`}
<span class="small soft">${numbers.filter(Boolean).join(' · ')}</span></header>${renderMarkdown(segments, cut.text)}${cut.note}</article>`;
}

const toneOf = (position: string): Tone => (position === 'support' ? 'good' : position === 'oppose' ? 'bad' : 'plain');

/** Panels that were asked at once stand in one turn, others in one turn a response, from expert A on. */
export function panelsOf({ turns }: Pick<Thread, 'turns'>): Panel[] {
  const panels: Panel[] = [];
  for (const turn of turns) {
    const records = turn.modelMetadata?.voices;
    if (!records || records.length === 0 || turn.role !== 'assistant') continue;
    const heard = records.map(record => ({ record, text: textOf(turn, record), seq: turn.seq }));
    const last = panels.at(-1);
    const isByStep = records.length === 1 && records[0]?.from === 0;
    const goesOn = isByStep && records[0]?.expert !== 'A' && last?.isByStep === true;
    if (goesOn && last)
      panels[panels.length - 1] = { ...last, seq: turn.seq, responses: [...last.responses, ...heard] };
    else panels.push({ seq: turn.seq, responses: heard, summary: summaryOf(turn), isByStep });
  }
  return panels;
}

/** Stored places hold for the text that was stored with them: one that was masked later, on import, is another. */
function textOf(turn: StoredTurn, record: PanelistRecord): string {
  const { content } = turn;
  const { from, to } = record;
  if ((from === 0 && to === content.length) || standsAt(turn, record)) return content.slice(from, to);
  return 'This verdict cannot be located in its turn; see the transcript.';
}

const standsAt = ({ content }: StoredTurn, record: PanelistRecord): boolean =>
  content.slice(0, record.from).endsWith(headingOf(record));

const headingOf = ({ expert, model, stance }: PanelistRecord): string =>
  `### Expert ${expert}: ${model} (stance: ${stance})\n\n`;

/** What stands before the verdicts. */
function summaryOf(turn: StoredTurn): string {
  const { content, modelMetadata } = turn;
  const [first] = modelMetadata?.voices ?? [];
  if (!first || first.from === 0) return '';
  const end = standsAt(turn, first) ? first.from - headingOf(first).length : content.indexOf('## Verdicts');
  return content
    .slice(0, Math.max(0, end))
    .replace(/^# Consensus\s*/, '')
    .trimEnd()
    .replace(/## Verdicts$/, '')
    .trimEnd();
}
