import type { Random } from '../../src/core/ports.ts';

/** The same numbers and UUIDs for the same seed, on every machine. */
export function seededRandom(seed = 1): Random {
  let state = seed >>> 0;

  const word = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };

  return {
    fraction: () => word() / 2 ** 32,
    uuid() {
      const hex = [word(), word(), word(), word()].map(part => part.toString(16).padStart(8, '0')).join('');
      const variant = '89ab'[parseInt(hex.charAt(16), 16) % 4];
      return [
        hex.slice(0, 8),
        hex.slice(8, 12),
        `4${hex.slice(13, 16)}`,
        `${variant}${hex.slice(17, 20)}`,
        hex.slice(20, 32),
      ].join('-');
    },
  };
}
