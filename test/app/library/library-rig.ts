import { afterEach, beforeEach, expect } from 'vitest';
import { createPolylogue, type Polylogue, type PolylogueOptions } from '../../../src/index.ts';
import { vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

export interface LibraryRig {
  vendor(): FakeVendor;
  project(): TempProject;
  open(options?: PolylogueOptions): Promise<Polylogue>;
  /** All text of a request, the last one unless told. */
  asked(at?: number): string;
}

/** A fake vendor, a project, and as many Polylogues as a test opens, all closed after it. */
export function libraryRig(): LibraryRig {
  let vendor: FakeVendor;
  let project: TempProject;
  let home: TempProject;
  const open: Polylogue[] = [];
  beforeEach(async () => {
    vendor = await startOpenAi();
    project = await tempProject({
      'src/a.ts': 'export const one = 1;\nexport const two = 2;\n',
      'AGENTS.md': 'House rule 7.',
    });
    home = await tempProject();
  });
  afterEach(async () => {
    for (const polylogue of open.splice(0)) await polylogue.cleanup();
    expect(vendor.violations).toEqual([]);
    await vendor.close();
    await project.dispose();
    await home.dispose();
  });
  return {
    vendor: () => vendor,
    project: () => project,
    async open(options = {}) {
      const settings = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', ...options.settings };
      const place = { env: { PATH: process.env.PATH }, home: home.root, root: project.root };
      const polylogue = await createPolylogue({ ...place, ...options, settings });
      open.push(polylogue);
      return polylogue;
    },
    asked: (at = -1) =>
      vendor.requests
        .at(at)
        ?.messages.map(({ role, text }) => `${role}: ${text}`)
        .join('\n') ?? '',
  };
}
