import type { Sha256, ThreadId } from '../../core/ids.ts';
import type { ExchangeStatus, StoredTurn, Thread, ThreadHead, WorkflowState } from '../../core/thread.ts';
import { damaged, packRecord, unpackRecord } from '../../storage/redis/records.ts';
import { allTextsOf, pairsOf } from '../../storage/redis/script.ts';
import { foldWords } from '../../storage/search-words.ts';
import type { ThreadChange } from '../../storage/store.ts';

/** The words of a turn are kept this far into it. */
const searchedChars = 1_000_000;

const statuses: readonly ExchangeStatus[] = ['pending', 'done', 'failed', 'interrupted'];

/** What `commitThread` takes: the name of each part, and two values. */
export function changeParts(
  id: ThreadId,
  seq: number,
  { turns = [], exchange, workflow, compaction }: ThreadChange,
  referred: readonly Sha256[],
  user: string,
): string[] {
  const parts: string[][] = turns.flatMap(turn => [
    ['turn', packRecord({ kind: 'turn', thread: id, turn }), ''],
    ['joined', turn.exchange, 'pending'],
    ['words', String(turn.seq), `${turn.exchange} ${distinctWords(turn.content)}`],
  ]);
  if (exchange) parts.push(['status', exchange.id, exchange.status]);
  if (compaction) parts.push(['summary', packRecord({ kind: 'compaction', thread: id, compaction }), '']);
  if (workflow?.state) {
    const { tool, state } = workflow;
    parts.push(['workflow', tool, packRecord({ kind: 'workflow', thread: id, tool, seq, state })]);
  } else if (workflow) parts.push(['no workflow', workflow.tool, '']);
  return [...parts, ...referred.map(sha => ['text', sha, user])].flat();
}

/** A search asks only whether words occur, so each is kept once. */
function distinctWords(text: string): string {
  return [...new Set(foldWords(text.slice(0, searchedChars)).split(' '))].join(' ');
}

/** A thread of what `readThread` answers after the head; undefined when its turns are gone. */
export function threadOf(head: ThreadHead, startSeq: number, answer: readonly unknown[]): Thread | undefined {
  const { id } = head;
  const [turns, exchanges, summaries, workflows] = answer;
  const kept = allTextsOf(turns);
  if (kept.length === 0 && head.seq > startSeq) return undefined;
  const states: Record<string, WorkflowState> = Object.create(null);
  for (const [tool, text] of pairsOf(workflows)) {
    const record = unpackRecord(text, 'workflow');
    if (record?.thread !== id || record.tool !== tool) return damaged(id, `the workflow state of ${tool}`);
    states[tool] = record.state;
  }
  return {
    ...head,
    turns: turnsOf(head, startSeq, kept, new Map(pairsOf(exchanges))),
    compactions: allTextsOf(summaries).map(text => {
      const record = unpackRecord(text, 'compaction');
      return record?.thread === id ? record.compaction : damaged(id, 'one of its summaries');
    }),
    workflows: { ...states },
  };
}

function turnsOf(
  { id, seq: last }: ThreadHead,
  startSeq: number,
  texts: readonly string[],
  exchanges: ReadonlyMap<string, string>,
): StoredTurn[] {
  const turns = texts.map((text, index): StoredTurn => {
    const seq = startSeq + index + 1;
    const record = unpackRecord(text, 'turn');
    const status = statuses.find(word => word === exchanges.get(record?.turn.exchange ?? ''));
    if (record?.thread !== id || record.turn.seq !== seq || !status) return damaged(id, `turn ${seq}`);
    return { ...record.turn, status };
  });
  return startSeq + turns.length === last ? turns : damaged(id, `turn ${startSeq + turns.length + 1}`);
}
