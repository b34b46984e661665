import type { Document } from '../../../support/product.ts';

/** Two runs of a tool, of three steps each, that differ in all that a thread keeps of them. */
export const stateRuns = [
  {
    tool: 'refactor',
    one: [
      { relevant_files: ['a.ts'], refactor_type: 'decompose', issues_found: [{ type: 'decompose', description: 'x' }] },
      { files_checked: ['a.ts'], confidence: 'partial' },
      { issues_found: [{ type: 'organization', description: 'y' }] },
    ],
    other: [
      { relevant_files: ['b.ts'], focus_areas: ['names'], confidence: 'exploring' },
      { files_checked: ['b.ts'], issues_found: [{ type: 'modernize', description: 'z' }] },
      { confidence: 'complete' },
    ],
  },
  {
    tool: 'testgen',
    one: [
      { relevant_files: ['a.ts'], relevant_context: ['empty'] },
      { relevant_context: ['huge'], confidence: 'medium' },
      { relevant_context: ['negative'], confidence: 'high' },
    ],
    other: [
      { relevant_files: ['b.ts'] },
      { relevant_files: ['a.ts'], confidence: 'low' },
      { confidence: 'certain', relevant_context: ['order'] },
    ],
  },
  {
    tool: 'docgen',
    one: [
      { relevant_files: ['a.ts', 'b.ts'], document_flow: false },
      { relevant_files: ['b.ts'] },
      { relevant_files: ['a.ts'] },
    ],
    other: [
      { relevant_files: ['b.ts'], update_existing: false, total_files_to_document: 4 },
      { relevant_files: ['b.ts'] },
      { num_files_documented: 3 },
    ],
  },
  {
    tool: 'codereview',
    one: [
      { relevant_files: ['a.ts'], focus_on: 'names', issues_found: [{ severity: 'high', description: 'x' }] },
      { files_checked: ['a.ts'], confidence: 'medium' },
      { issues_found: [{ severity: 'low', description: 'y' }] },
    ],
    other: [
      { relevant_files: ['b.ts'], review_type: 'security', confidence: 'low' },
      { files_checked: ['b.ts'], standards: 'no constants' },
      { review_validation_type: 'internal' },
    ],
  },
  {
    tool: 'debug',
    one: [
      { relevant_files: ['a.ts'], hypothesis: 'off by one' },
      { hypothesis: 'a race', confidence: 'medium' },
      { confidence: 'high' },
    ],
    other: [
      { relevant_files: ['b.ts'], hypothesis: 'no bug' },
      { relevant_context: ['beta'], confidence: 'low' },
      { confidence: 'certain' },
    ],
  },
  {
    tool: 'planner',
    one: [{ step: 'Move the store' }, { is_branch_point: true, branch_from_step: 1, branch_id: 'files' }, {}],
    other: [{ step: 'Split the store' }, { is_step_revision: true, revises_step_number: 1 }, { step: 'Done' }],
  },
  {
    tool: 'tracer',
    one: [
      { trace_mode: 'precision', target_description: 'alpha' },
      { trace_mode: 'precision', target_description: 'alpha', relevant_files: ['a.ts'] },
      { trace_mode: 'precision', target_description: 'alpha' },
    ],
    other: [
      { trace_mode: 'dependencies', target_description: 'beta' },
      { trace_mode: 'dependencies', target_description: 'beta', files_checked: ['b.ts'] },
      { trace_mode: 'dependencies', target_description: 'beta' },
    ],
  },
] as const;

/** A reply without what is another at every call. */
export function told({ metadata: _facts, continuation_offer: _offer, ...rest }: Document): Document {
  return rest;
}

export function lastOf({ continuation_id: _id, ...rest }: Document): Document {
  return rest;
}
