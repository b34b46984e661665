import type { HostPrompts, ResourceTemplate, ToolHost, ToolListing } from '../core/tool-host.ts';

export const scheme = 'polylogue://';

export const json = 'application/json';

export const resourceTemplates: readonly ResourceTemplate[] = [
  ['threads/{id}', 'thread', 'Thread', 'A stored conversation, turn by turn.', json],
  ['threads/{id}/turns/{seq}', 'turn', 'Turn', 'One turn of a thread, whole.', 'text/markdown'],
  ['jobs/{id}', 'job', 'Job', 'A call that goes on by itself, and its reply.', json],
].map(([path = '', name = '', title = '', description = '', mimeType = '']) => {
  return { uriTemplate: scheme + path, name, title, description, mimeType };
});

/** What hosts ask for before the first call. */
export interface EarlyListing {
  listings: readonly ToolListing[];
  prompts: HostPrompts;
}

/**
 * A host that tells what there is at once, and is opened by the first who wants more than that. `open` gives the same promise each
 * time: who awaits it later, to close what it opens, comes after the calls that wait for it.
 */
export function createEarlyHost({ listings, prompts }: EarlyListing, open: () => Promise<ToolHost>): ToolHost {
  let opened: ToolHost | undefined;
  const openHost = async () => {
    opened = await open();
    return opened;
  };
  // Whoever has a job got it from the open host.
  const jobs = () => {
    if (!opened) throw new TypeError('a job is asked about before there can be any');
    return opened.jobs;
  };
  return {
    list: () => listings,
    replyTokens: () => opened?.replyTokens?.(),
    call: async (request, signal) => (await openHost()).call(request, signal),
    prompts,
    resources: {
      templates: () => resourceTemplates,
      list: async principal => (await openHost()).resources.list(principal),
      read: async (uri, principal) => (await openHost()).resources.read(uri, principal),
      watch: async (owner, listener, signal) => (await openHost()).resources.watch(owner, listener, signal),
    },
    jobs: {
      find: async (id, owner) => (await openHost()).jobs.find(id, owner),
      cancel: async (id, owner) => (await openHost()).jobs.cancel(id, owner),
      stage: job => jobs().stage(job),
      questions: job => jobs().questions(job),
      answer: (job, key, answer) => jobs().answer(job, key, answer),
      show: reply => jobs().show(reply),
      keep: async (tool, reply, owner) => (await openHost()).jobs.keep(tool, reply, owner),
    },
    complete: async (argument, typed, principal) => (await openHost()).complete(argument, typed, principal),
  };
}
