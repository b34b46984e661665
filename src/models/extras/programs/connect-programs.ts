import type { SharedV4ProviderOptions } from '@ai-sdk/provider';
import { type Programs, programProviderId } from '../../../providers/external-cli/program.ts';
import { programModel } from '../../../providers/external-cli/program-model.ts';
import type { CallParams, ConnectAround, Connection } from '../../provider.ts';
import { programSessions } from './program-sessions.ts';

export function connectPrograms(programs: Programs, around: ConnectAround | undefined): Connection {
  const sessions = around && programSessions(around);
  return {
    languageModel: ({ id }) => programModel({ programs, sessions }, id),
    providerOptions: optionsOf,
    tailRole: () => 'user',
    close: programs.close,
  };
}

/** What the model needs of a call beside its prompt; it reads them in `program-model.ts`. */
function optionsOf({ cacheKey, about }: CallParams): SharedV4ProviderOptions {
  const { reqId = '', tool = '', root, program } = about ?? {};
  const options = { reqId, tool, thread: cacheKey, root, role: program?.role, mayWrite: program?.mayWrite === true };
  return { [programProviderId]: options };
}
