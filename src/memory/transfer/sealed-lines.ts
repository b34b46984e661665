import { hash } from 'node:crypto';

const sumLength = 32;
const sealed = /,"sum":"([0-9a-f]{32})"\}$/;

/**
 * Each line ends in the checksum of itself and of all before it: a line that was changed, moved, doubled or left out is
 * noticed where it stands. This finds damage; it is no signature.
 */
export interface SumChain {
  /** The line with its checksum, without a line end. `json` is an object with at least one member. */
  seal(json: string): string;
  /** The line as it was before it was sealed; undefined when it is not what stood there. */
  open(line: string): string | undefined;
  /** Of all lines so far. */
  readonly sum: string;
}

export function createSumChain(): SumChain {
  let sum = '';
  const next = (json: string) => hash('sha256', `${sum}\n${json}`).slice(0, sumLength);
  return {
    seal(json) {
      sum = next(json);
      return `${json.slice(0, -1)},"sum":"${sum}"}`;
    },
    open(line) {
      const found = sealed.exec(line.slice(-(sumLength + 10)));
      if (!found) return undefined;
      const json = `${line.slice(0, line.length - found[0].length)}}`;
      if (next(json) !== found[1]) return undefined;
      sum = next(json);
      return json;
    },
    get sum() {
      return sum;
    },
  };
}
