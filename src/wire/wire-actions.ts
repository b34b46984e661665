import { type EngineParts, maskFor, wirePay } from '../app/compose-engine.ts';
import type { ActionParts } from '../calls/actions/actions.ts';
import { rateLimits, replyTokens, spendCaps } from '../config/derived-settings.ts';
import { paidSearcher } from '../engine/spend/paid-services.ts';
import type { Transfer } from '../threads/transfer/transfer.ts';

/** What the handlers of actions are given. */
export function wireActions({
  values,
  team,
  emit,
  services,
  files,
  home,
  mask,
  ...parts
}: Pick<EngineParts, 'values' | 'team' | 'emit' | 'services' | 'files' | 'home' | 'mask' | 'random' | 'store'> &
  Pick<ActionParts, 'threads' | 'jobs' | 'clock' | 'product' | 'patience' | 'recent'> & {
    transfer: Transfer;
  }): ActionParts {
  const { limits: rates, unknown } = rateLimits(values);
  for (const word of unknown) {
    emit({ type: 'warning', where: 'RATE_LIMITS', message: `"${word}" is not of the form tool=number.` });
  }
  return {
    ...parts,
    emit,
    models: { ...team, defaultModel: values.defaultModel },
    limits: { ...spendCaps(values), rates },
    startedAt: parts.clock.monotonic(),
    replyTokens: replyTokens(values),
    uploads: {
      documents: services.documents,
      sandbox: files.sandbox,
      mask: maskFor(values, mask),
      home,
      maxNamedFiles: values.maxNamedFiles,
    },
    ...(services.web && {
      web: paidSearcher(services.web, 'glm_web_search', wirePay({ ...parts, values, team, emit })),
    }),
    files: { transfer: parts.transfer, sandbox: files.sandbox, random: parts.random, home },
  };
}
