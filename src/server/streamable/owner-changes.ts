import { InMemoryServerEventBus, type ServerEvent, type ServerEventBus } from '@modelcontextprotocol/server';
import type { HostResources } from '../../core/tool-host.ts';

/** Changes of one owner's threads and jobs, for 2026 clients that listen; looked for only while somebody does. */
export interface OwnerChanges extends ServerEventBus {
  /** Resolves once nothing is missed any more. Called before a client begins to listen; the result lets it go again. */
  begin(): Promise<() => void>;
}

export function createOwnerChanges(resources: Pick<HostResources, 'watch'>, owner: string): OwnerChanges {
  const bus = new InMemoryServerEventBus();
  let listeners = 0;
  let stop = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    publish: (event: ServerEvent) => bus.publish(event),
    subscribe: listener => bus.subscribe(listener),
    async begin() {
      listeners += 1;
      watching ??= resources.watch(owner, uri => bus.publish({ kind: 'resource_updated', uri }), stop.signal);
      await watching;
      let over = false;
      return () => {
        if (over) return;
        over = true;
        listeners -= 1;
        if (listeners > 0) return;
        stop.abort();
        stop = new AbortController();
        watching = undefined;
      };
    },
  };
}
