/** US dollars as people read them, without the sign: two decimals or more, and as many as it takes to see that it is not nothing. */
export function usdText(usd: number): string {
  const size = Math.abs(usd);
  if (!(size > 0)) return '0';
  const digits = size >= 1 ? 2 : size >= 0.001 ? 4 : significant(size, 2);
  return usd.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, '$1');
}

/** `$0.0042`. */
export function dollars(usd: number): string {
  return `$${usdText(usd)}`;
}

/** US dollars for programs: without the noise of floating point, and never 0 where something was paid. */
export function roundedUsd(usd: number): number {
  const size = Math.abs(usd);
  return Number(usd.toFixed(size >= 0.001 || size === 0 ? 6 : significant(size, 3)));
}

/** Decimals with so many digits that say something; `toFixed` takes no more than 100. */
function significant(size: number, count: number): number {
  return Math.min(100, count - 1 - Math.floor(Math.log10(size)));
}
