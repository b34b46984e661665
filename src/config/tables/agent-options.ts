import type { OptionSpec } from '../../core/option.ts';

/** Settings of models that work with tools. */
export const agentOptions = {
  agentApprove: {
    env: ['AGENT_APPROVE'],
    flag: 'approve',
    type: 'string',
    default: 'reads',
    choices: ['never', 'reads', 'all'],
    doc: 'What an agent may do without being asked about: nothing (`never`), reading within the roots (`reads`), or everything that the other settings let it (`all`). What is left is asked where the host shows forms, and refused elsewhere.',
    group: 'Agent',
    operatorOnly: true,
  },
  agentCommands: {
    env: ['AGENT_COMMANDS'],
    type: 'list',
    doc: 'The only commands that an agent may run, each by its first words (`*` for any one): `npm test,node --test`; unset: the usual ways to test and check a project.',
    group: 'Agent',
    operatorOnly: true,
  },
  agentCommandSeconds: {
    env: ['AGENT_COMMAND_SECONDS'],
    type: 'number',
    default: 120,
    min: 1,
    max: 3_600,
    doc: 'How long one command of an agent may take; it is ended then with all that it started.',
    group: 'Agent',
  },
  agentFetch: {
    env: ['AGENT_FETCH'],
    type: 'boolean',
    default: false,
    doc: 'Lets agents read pages of the public web; never addresses of this machine or network. Each page is asked about unless AGENT_APPROVE is `all`.',
    group: 'Agent',
    operatorOnly: true,
  },
  agentTriageModel: {
    env: ['AGENT_TRIAGE_MODEL'],
    type: 'string',
    doc: "A model that looks at what failed in an agent's run and adds a hint; unset: none does.",
    group: 'Agent',
    operatorOnly: true,
  },
  mcpServers: {
    env: ['POLYLOGUE_MCP_SERVERS'],
    type: 'path',
    doc: 'A file in the form of the hosts (`{"mcpServers": {"name": {"command": "…"}}}`, or with `url`) whose servers\' tools agents may use; each call is asked about, but for those that only read of a server with `"trusted": true`.',
    group: 'Agent',
    operatorOnly: true,
  },
} as const satisfies Record<string, OptionSpec>;
