import type { HostPrompts, ToolHost, ToolListing } from '../../domain/request.ts';
import { resourceTemplates } from './resources.ts';

/** What hosts ask for before the first call. */
export interface Told {
  listings: readonly ToolListing[];
  prompts: HostPrompts;
}

/** A host that tells what there is at once, and is opened by the first who wants more than that. */
export function createEarlyHost({ listings, prompts }: Told, open: () => Promise<ToolHost>): ToolHost {
  let opened: ToolHost | undefined;
  const host = async () => {
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
    call: async (request, signal) => (await host()).call(request, signal),
    prompts,
    resources: {
      templates: () => resourceTemplates,
      list: async principal => (await host()).resources.list(principal),
      read: async (uri, principal) => (await host()).resources.read(uri, principal),
      watch: async (owner, listener, signal) => (await host()).resources.watch(owner, listener, signal),
    },
    jobs: {
      find: async (id, owner) => (await host()).jobs.find(id, owner),
      cancel: async (id, owner) => (await host()).jobs.cancel(id, owner),
      stage: job => jobs().stage(job),
      questions: job => jobs().questions(job),
      answer: (job, key, answer) => jobs().answer(job, key, answer),
      show: reply => jobs().show(reply),
    },
    complete: async (argument, typed, principal) => (await host()).complete(argument, typed, principal),
  };
}
