import { ProtocolError, ProtocolErrorCode, type Server } from '@modelcontextprotocol/server';
import type { HostPrompts, ToolHost } from '../core/tool-host.ts';
import type { ProjectOf } from './mcp/client-roots.ts';

/** Slash commands, and what their arguments and the addresses of resources may become while they are typed. */
export function servePrompts(server: Server, host: ToolHost, projectOf: ProjectOf): void {
  const { prompts } = host;
  const listed = prompts.list().map(prompt => ({ ...prompt, arguments: prompt.arguments.map(each => ({ ...each })) }));
  server.setRequestHandler('prompts/list', () => ({ prompts: listed }));
  server.setRequestHandler('prompts/get', ({ params }) => {
    const text = prompts.text(params.name, params.arguments ?? {});
    if (text === undefined) throw unknownPrompt(params.name, prompts);
    const description = listed.find(({ name }) => name === params.name)?.description;
    return { ...(description && { description }), messages: [{ role: 'user', content: { type: 'text', text } }] };
  });
  server.setRequestHandler('completion/complete', async ({ params: { ref, argument } }, context) => {
    const { host, principal } = await projectOf(context);
    const what = ref.type === 'ref/prompt' ? argument.name : idOf(ref.uri, argument.name);
    const values = what === undefined ? [] : await host.complete(what, argument.value, principal);
    return { completion: { values, total: values.length, hasMore: false } };
  });
}

/** What the `id` in an address is the id of. */
function idOf(template: string, argument: string): string | undefined {
  if (argument !== 'id') return undefined;
  return template.includes('/jobs/') || template.includes('//jobs/') ? 'job' : 'thread';
}

function unknownPrompt(name: string, prompts: HostPrompts): ProtocolError {
  const names = prompts.list().map(prompt => prompt.name);
  const shown = JSON.stringify(name.slice(0, 60));
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `There is no prompt ${shown}; there are ${names.join(', ')}.`,
  );
}
