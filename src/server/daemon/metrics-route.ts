import { operator } from '../access/caller.ts';
import { type Refusal, refusalResponse } from '../guards/refusal.ts';
import type { Route } from '../http/routes.ts';

/** Numbers of the whole process in Prometheus' text format: they tell of everybody's calls, so the operator alone gets them. */
export function metricsRoute(text: () => string): Route {
  return {
    path: '/metrics',
    methods: ['GET', 'HEAD'],
    access: 'token',
    async handle({ caller }) {
      if (caller?.owner !== operator.owner) return refusalResponse(notYours);
      const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' };
      return new Response(text(), { headers });
    },
  };
}

const notYours: Refusal = {
  status: 403,
  class: 'owner',
  message: 'The metrics tell of the calls of all owners; only tokens of the operator may read them.',
  next: `Give whoever collects them a token of the owner "${operator.owner}", which may be read-only and without tools.`,
};
