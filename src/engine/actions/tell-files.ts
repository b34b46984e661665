import { isAppError } from '../../core/errors.ts';
import type { SkipCode } from '../../core/file.ts';
import type { Emit } from '../../core/ports.ts';

/** Which call an event belongs to. */
export interface ToldCall {
  reqId: string;
  tool: string;
}

/** Tells the observers which files an action read and wrote, and which it was refused. */
export interface TellFiles {
  /** `code`: why it was not read. */
  read(path: string, code?: SkipCode): void;
  /** Does it, and tells what came of it. `pathOf` its result: where the file is. */
  writing<Result>(path: string, write: () => Promise<Result>, pathOf: (result: Result) => string): Promise<Result>;
}

export function tellFiles(emit: Emit, call: ToldCall): TellFiles {
  return {
    read(path, code) {
      const skipped = code === undefined ? [] : [{ path, code }];
      emit({ type: 'files.read', ...call, embedded: code === undefined ? [path] : [], skipped });
    },
    async writing(path, write, pathOf) {
      try {
        const result = await write();
        emit({ type: 'files.written', ...call, path: pathOf(result) });
        return result;
      } catch (error) {
        const code = isAppError(error) ? error.details.code : 'INTERNAL_SERVER_ERROR';
        emit({ type: 'files.written', ...call, path, code });
        throw error;
      }
    },
  };
}
