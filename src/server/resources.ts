import { ResourceNotFoundError, type Server } from '@modelcontextprotocol/server';
import type { HostResources, Principal } from '../domain/request.ts';
import type { Era } from './era.ts';

/** The most addresses that one connection may watch. */
const mostWatched = 1_024;

/** Threads, jobs and models as resources; a change of one is told to who asked for it. */
export function serveResources(server: Server, resources: HostResources, principal: Principal, era: Era): void {
  const resourceTemplates = resources.templates().map(template => ({ ...template }));
  server.setRequestHandler('resources/list', async () => ({ resources: await resources.list(principal) }));
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
    const found = await resources.read(uri, principal);
    if (!found) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, ...found }] };
  });
  // 2026 clients listen to the transport, which passes on what each of them asked for and drops the rest.
  const wanted = era === 'modern' ? undefined : new Set<string>();
  let stop: (() => void) | undefined;
  const watch = () => {
    stop ??= resources.watch((uri, owner) => {
      if (owner !== principal.owner || (wanted && !wanted.has(uri))) return;
      // A client that is gone needs no word of changes.
      server.sendResourceUpdated({ uri }).catch(() => {});
    });
  };
  server.onclose = () => stop?.();
  if (!wanted) {
    watch();
    return;
  }
  server.setRequestHandler('resources/subscribe', ({ params }) => {
    if (wanted.size < mostWatched) wanted.add(params.uri);
    watch();
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    wanted.delete(params.uri);
    return {};
  });
}
