import type { Standing } from '../../../calls/call-record.ts';
import { isAppError } from '../../../core/errors.ts';
import type { Threads } from '../../../threads/threads.ts';

/**
 * Brings a question back to the end of its thread, which was let go of while somebody was asked. Where others came between, it
 * was closed by them and stands again behind what they said: a thread only ever grows at its end. Under the thread's lease.
 */
export async function standAgain(threads: Threads, standing: Standing): Promise<void> {
  const { id, owner, workspace } = standing.thread;
  try {
    const found = await threads.find(id, { owner, workspace });
    const own = found.turns.find(({ exchange }) => exchange === standing.turn.exchange);
    if (own?.status === 'pending' && found.seq === standing.turn.seq) {
      standing.thread = found;
      return;
    }
    const now = await threads.refresh(found);
    const turn = { ...standing.turn, seq: now.seq + 1, exchange: threads.newExchange() };
    standing.thread = await threads.add(now, turn.exchange, { turns: [turn], status: 'pending' });
    standing.turn = turn;
  } catch (error) {
    // Whoever deleted the thread did not end the work: it is answered, with the word that no thread has it.
    if (!isAppError(error) || error.kind !== 'input') throw error;
  }
}
