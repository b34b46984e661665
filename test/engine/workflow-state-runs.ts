import type { Document } from '../support/product.ts';

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
] as const;

/** A reply without what is another at every call. */
export function told({ metadata: _facts, continuation_offer: _offer, ...rest }: Document): Document {
  return rest;
}

export function lastOf({ continuation_id: _id, ...rest }: Document): Document {
  return rest;
}
