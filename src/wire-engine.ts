import { panelLimits, promptSizeLimit, replyTokens } from './config/derive.ts';
import type { Clock, Emit, Mask, Random } from './domain/ports.ts';
import { type ActionParts, createActionContext } from './engine/actions.ts';
import { languageOf, preambleOf } from './engine/gather/preamble.ts';
import type { Offer } from './engine/offer/exposure.ts';
import type { EngineOptions } from './engine/run.ts';
import type { Git } from './files/git/git.ts';
import type { Sandbox } from './files/sandbox.ts';
import type { Store } from './memory/store.ts';
import { countO200k } from './models/extras/o200k.ts';
import type { Team } from './models/team.ts';
import type { AppConfig } from './wire-models.ts';
import type { Services } from './wire-services.ts';

export interface EngineParts {
  values: AppConfig['values']['app'];
  context: ActionParts;
  offer: Offer;
  team: Team;
  store: Store;
  sandbox: Sandbox;
  git: Git;
  mask: Mask;
  random: Random;
  clock: Clock;
  emit: Emit;
  home: string;
  services: Pick<Services, 'documents'>;
}

/** Settings and running parts → what the pipeline of a call is made of. */
export function wireEngine(parts: EngineParts): EngineOptions {
  const { values, context, offer, team, store, sandbox, git, random, clock, emit, home } = parts;
  const { threads } = context;
  return {
    offer,
    random,
    threads,
    route: team.route,
    askModel: team.ask,
    promptLimit: promptSizeLimit(values),
    replyTokens: replyTokens(values),
    replyFormat: values.replyFormat,
    efforts: { thinkdeep: values.thinkdeepEffort },
    panel: { ...panelLimits(values), isLocal: team.isLocal },
    fanout: {
      defaultModels: values.defaultModels ?? [],
      language: languageOf(values.locale),
      prefixes: team.prefixes,
    },
    workflow: { expertAtCertain: values.expertAtCertain, compat: values.compat, offered: { git } },
    actionContext: (principal, signal) => createActionContext(context, principal, signal),
    compose: {
      store,
      sandbox,
      mask: values.maskSecrets ? parts.mask : async text => ({ text, found: {} }),
      clock,
      emit,
      newExchange: threads.newExchange,
      countTokens: countO200k,
      countPrompt: team.countPrompt,
      home,
      ...(parts.services.documents && { documents: parts.services.documents }),
      preamble: preambleOf(values.locale),
      maxTurns: values.maxConversationTurns,
      maxFileBytes: values.maxFileBytes,
      maxNamedFiles: values.maxNamedFiles,
    },
  };
}
