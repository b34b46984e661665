import { securityError } from '../../domain/error.ts';
import type { AskModel } from '../../models/answer.ts';
import { programProviderId } from '../../models/extras/programs/program.ts';

/** The models as somebody asks them who may only read some directories: no program is among them, for none can be kept there. */
export function withoutPrograms(ask: AskModel): AskModel {
  return async question => {
    if (question.candidates.some(({ model }) => model.provider === programProviderId)) throw notForThem();
    return ask(question);
  };
}

function notForThem() {
  return securityError('CLIs are not for callers whose directories are limited: they read what their user may read.', {
    class: 'restricted',
    next: 'Name a model, or ask the operator for a token without roots.',
  });
}
