import { describe, expect, it } from 'vitest';
import { splitGeneratedCode } from '../../../src/engine/modes/prompt.ts';

describe('code in an answer', () => {
  it('is cut out where it stands, behind letters that grow in lower case too', () => {
    const code = '<Generated-Code>\nlet a;\n</GENERATED-CODE>';
    expect(splitGeneratedCode(`${'İ'.repeat(30)} it is:\n${code}\nDone.`)).toEqual({
      code,
      rest: `${'İ'.repeat(30)} it is:\n\nDone.`,
    });
  });
});
