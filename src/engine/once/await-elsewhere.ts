import type { CallLog, LoggedCall } from '../../calls/durable/call-log.ts';
import { failure } from '../../calls/reply.ts';
import { AppError, cancelledError, throwIfAborted } from '../../core/errors.ts';
import type { JobReply } from '../../core/job.ts';
import type { Clock, Random } from '../../core/ports.ts';
import type { ToolRequest } from '../../core/tool-host.ts';
import type { Holding } from '../jobs/holding.ts';
import type { Identity } from './identify.ts';
import { type RecoverOptions, recovered } from './recovered.ts';
import { type StillSoOptions, stillSo } from './still-so.ts';

export interface ElsewhereOptions extends StillSoOptions, RecoverOptions {
  log: CallLog;
  holding: Pick<Holding, 'isDead'>;
  clock: Clock;
  random: Random;
}

/** How often the call is looked at, and how often its process is told that somebody waits. */
const pollMs = 250;
const wantedMs = 5_000;
/** For how long that is believed. */
export const wantedFreshMs = 10_000;

/** Waits for a call of another process: answers its record once it ended, or the reply if there is no record to go by. Never throws. */
export async function awaitElsewhere(
  options: ElsewhereOptions,
  { id }: LoggedCall,
  { key, edits }: Identity,
  { request, signal }: { request: ToolRequest; signal: AbortSignal },
): Promise<LoggedCall | JobReply> {
  const { log, holding, clock, random } = options;
  const failed = (error: unknown) => failure(error, { toolName: request.name, reqId: random.uuid() });
  try {
    let isDead = false;
    for (let toldAt = Number.NEGATIVE_INFINITY; ; ) {
      throwIfAborted(signal);
      const { calls } = await log.read(key);
      const call = calls.find(each => each.id === id);
      if (!call) return failed(vanished());
      if (call.status !== 'running') return call;
      // A process that is gone may have ended the call in order since it was read.
      if (isDead) {
        const trace = await stillSo(options, call, { folders: [], edits }, request.principal);
        return recovered(options, call, trace ?? { turns: [] }, request.name) ?? failed(vanished());
      }
      isDead = await holding.isDead(call.holder);
      if (isDead) continue;
      if (clock.monotonic() - toldAt >= wantedMs) {
        toldAt = clock.monotonic();
        await log.change(key, id, found => ({ ...found, wantedAt: clock.now() }));
      }
      await clock.sleep(pollMs, signal);
    }
  } catch (error) {
    return failed(signal.aborted ? cancelledError(undefined, { cause: error }) : error);
  }
}

function vanished(): AppError {
  return new AppError('cancelled', 'The same call failed in the process that ran it.', {
    code: 'INTERRUPTED',
    class: 'interrupted',
    next: 'Send the call once more: it is a new one then.',
  });
}
