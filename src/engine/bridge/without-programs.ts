import { securityError } from '../../core/errors.ts';
import type { Team } from '../../models/call/models.ts';
import { programProviderId } from '../../providers/external-cli/program.ts';

/** The models for somebody who may only read some directories: no program is among them, for none can be kept there. */
export function withoutPrograms<Models extends Pick<Team, 'ask' | 'providers'>>(team: Models): Models {
  return {
    ...team,
    async ask(question) {
      if (question.candidates.some(({ model }) => model.provider === programProviderId)) throw notForThem();
      return team.ask(question);
    },
    providers: async options => (await team.providers(options)).filter(({ id }) => id !== programProviderId),
  };
}

function notForThem() {
  return securityError('CLIs are not for callers whose directories are limited: they read what their user may read.', {
    class: 'restricted',
    next: 'Name a model, or ask the operator for a token without roots.',
  });
}
