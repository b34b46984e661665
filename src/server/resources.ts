import { ResourceNotFoundError, type Server } from '@modelcontextprotocol/server';
import type { HostResources } from '../core/tool-host.ts';
import type { ProjectOf } from './mcp/client-roots.ts';

/** The most addresses that one connection may watch. */
const mostWatched = 1_024;

/** Threads, jobs and models as resources. */
export function serveResources(server: Server, resources: HostResources, projectOf: ProjectOf): void {
  const resourceTemplates = resources.templates().map(template => ({ ...template }));
  server.setRequestHandler('resources/list', async (_request, context) => {
    const { host, principal } = await projectOf(context);
    return { resources: await host.resources.list(principal) };
  });
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }, context) => {
    const { host, principal } = await projectOf(context);
    const found = await host.resources.read(uri, principal);
    if (!found) throw new ResourceNotFoundError(uri);
    return { contents: [{ uri, ...found }] };
  });
}

/** Changes, told to a client for as long as it wants to hear of any. */
export interface Updates {
  /** Whether every change is told: to a connection that passes on what its client asked for and drops the rest. */
  all(wanted: boolean): void;
  /** Tells the changes of these addresses alone; resolves once nothing is missed any more. */
  only(wanted: ReadonlySet<string>): Promise<void>;
}

export function updatesOf(server: Server, resources: HostResources, owner: string): Updates {
  let stop = new AbortController();
  let watching: Promise<void> | undefined;
  let closed = false;
  function watch(wanted: boolean, accepts: (uri: string) => boolean): Promise<void> {
    if (!wanted || closed) {
      stop.abort();
      stop = new AbortController();
      watching = undefined;
      return Promise.resolve();
    }
    const tell = (uri: string) => {
      // A client that is gone needs no word of changes.
      if (accepts(uri)) server.sendResourceUpdated({ uri }).catch(() => {});
    };
    watching ??= resources.watch(owner, tell, stop.signal);
    return watching;
  }
  server.onclose = () => {
    closed = true;
    stop.abort();
  };
  return {
    all: wanted => void watch(wanted, () => true),
    only: wanted => watch(wanted.size > 0, uri => wanted.has(uri)),
  };
}

/** The way in which 2025 clients ask for changes. */
export function serveSubscriptions(server: Server, updates: Updates): void {
  const wanted = new Set<string>();
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    if (wanted.size < mostWatched) wanted.add(uri);
    await updates.only(wanted);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
    wanted.delete(uri);
    await updates.only(wanted);
    return {};
  });
}
