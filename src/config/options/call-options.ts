import type { OptionSpec } from '../../core/option.ts';

/** Settings of which tools there are and how they work. */
export const toolOptions = {
  tools: {
    env: ['POLYLOGUE_TOOLS'],
    flag: 'tools',
    type: 'list',
    doc: 'The only tools to offer, by name; unset: those of the toolsets.',
    group: 'Tools',
    operatorOnly: true,
  },
  disabledTools: {
    env: ['DISABLED_TOOLS', 'POLYLOGUE_EXCLUDE_TOOLS'],
    flag: 'exclude-tools',
    type: 'list',
    doc: 'Tools to leave out, by name; `version` and `listmodels` always stay.',
    group: 'Tools',
    operatorOnly: true,
  },
  toolsets: {
    env: ['POLYLOGUE_TOOLSETS'],
    flag: 'toolsets',
    type: 'list',
    default: ['core', 'code', 'files'],
    doc: 'The groups of tools to offer; those of `files` come only with a key of Kimi or GLM.',
    group: 'Tools',
    operatorOnly: true,
  },
  profile: {
    env: ['POLYLOGUE_PROFILE'],
    flag: 'profile',
    type: 'string',
    default: 'standard',
    choices: ['lean', 'standard', 'full'],
    doc: 'How much of a context the tools take: a few of them with all workflows in one (`lean`), those of the toolsets, or all there are.',
    group: 'Tools',
    operatorOnly: true,
  },
  readOnly: {
    env: ['POLYLOGUE_READ_ONLY'],
    flag: 'read-only',
    type: 'boolean',
    default: false,
    doc: 'Refuses, and does not list, tools that write files or change or delete threads; questions are still stored.',
    group: 'Tools',
    operatorOnly: true,
  },
  expertAtCertain: {
    env: ['EXPERT_AT_CERTAIN'],
    type: 'boolean',
    default: false,
    doc: 'Asks the expert model at the end of a workflow even when the caller says that it is certain.',
    group: 'Tools',
  },
  compat: {
    env: ['POLYLOGUE_COMPAT'],
    type: 'boolean',
    default: true,
    doc: 'Keeps the status words of PAL where clearer ones exist, so that its callers go on working.',
    group: 'Tools',
  },
} as const satisfies Record<string, OptionSpec>;
