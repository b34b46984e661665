import { aliasOf, kindTraits, type ToolDefinition, workflowOf } from '../calls/tool.ts';
import type { HostPrompts, PromptListing } from '../core/tool-host.ts';
import type { ExposedTools } from './exposure.ts';

/** Commands that callers of PAL know by another name than the tool's. */
const palNames: Readonly<Record<string, string>> = { thinkdeep: 'thinkdeeper', codereview: 'review' };

const model = { name: 'model', description: 'Model to ask; omit to choose automatically', required: false };
const thread = { name: 'continuation_id', description: 'Thread to continue, or "last"', required: false };
const request = { name: 'request', description: 'What to work on', required: false };

const goOn: PromptListing = {
  name: 'continue',
  title: 'Continue a thread',
  description: 'Continue the newest thread of this project, or the one you name.',
  arguments: [thread, model, request],
};

/** A command a tool, and one to go on with a thread. */
export function createPrompts({ tools, unlisted }: Pick<ExposedTools, 'tools' | 'unlisted'>): HostPrompts {
  const dispatcher = tools.find(aliasOf);
  const callable = [...tools, ...unlisted].filter(tool => tool !== dispatcher);
  const byName = new Map<string, ToolDefinition>();
  for (const tool of callable) byName.set(palNames[tool.name] ?? tool.name, tool).set(tool.name, tool);
  const listed = [...callable.map(listingOf), goOn];
  const wayTo = (tool: ToolDefinition) =>
    dispatcher && unlisted.includes(tool) && workflowOf(tool)
      ? `"${dispatcher.name}" with kind "${tool.name}"`
      : `"${tool.name}"`;
  return {
    list: () => listed,
    text(name, args) {
      const [base = '', ...suffix] = name.split(':');
      const given = { ...args, ...(suffix.length > 0 && { model: suffix.join(':') }) };
      if (base === goOn.name) return goOnText(given);
      const tool = byName.get(base);
      return tool && toolText(tool, wayTo(tool), given);
    },
  };
}

function listingOf(tool: ToolDefinition): PromptListing {
  const { name, title, description, mode, effects } = tool;
  const own = palNames[name] ?? name;
  if (!kindTraits[mode.kind].continues) return { name: own, title, description, arguments: [request] };
  const asks = effects.network ? [model] : [];
  return { name: own, title, description, arguments: [request, ...asks, thread] };
}

type Given = Readonly<Record<string, string | undefined>>;

function toolText(tool: ToolDefinition, way: string, { request: about, model: named, continuation_id: id }: Given) {
  const settings = [named && `model "${named}"`, id && `continuation_id "${id}"`].filter(Boolean).join(' and ');
  return [
    `Use the Polylogue tool ${way}${settings && `, and give it ${settings}`}.`,
    workflowOf(tool) && 'Work through every step and complete the required_actions between steps.',
    about || 'It is about what was typed after the command, if anything; else what we are at in this conversation.',
  ]
    .filter(Boolean)
    .join('\n');
}

function goOnText({ request: about, model: named, continuation_id: id }: Given): string {
  const settings = [`continuation_id "${id || 'last'}"`, named && `model "${named}"`].filter(Boolean).join(' and ');
  return `Go on with our Polylogue thread: use the tool that it was last used with, or "chat", and give it ${settings}.\n${
    about || 'Take up what was typed after the command, if anything; else the point where it stopped.'
  }`;
}
