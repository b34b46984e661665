/** Two hashes of one text; they grow by one UTF-16 unit at a time. */
export class WordHash {
  #a = 0;
  #b = 0;

  constructor() {
    this.reset();
  }

  reset(): void {
    this.#a = 0x811c9dc5;
    this.#b = 0x9e3779b9;
  }

  add(code: number): void {
    this.#a = Math.imul(this.#a ^ code, 0x01000193) >>> 0;
    this.#b = Math.imul(this.#b + code, 0x85ebca6b) >>> 0;
  }

  /** Which of the `size` bits of a filter is the probe's for this text. */
  bit(probe: number, size: number): number {
    const start = (this.#a ^ (this.#a >>> 16)) >>> 0;
    const step = ((this.#b ^ (this.#b >>> 15)) | 1) >>> 0;
    return (start + probe * step) % size;
  }
}

/** Bits that one word sets in a filter. */
export const probes = 6;
