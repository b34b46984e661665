/** Clients by the beginning of the name they give, and how long they wait for one call: a little less than their own limit. */
const known: readonly (readonly [name: RegExp, seconds: number])[] = [
  [/^claude[ -]?code/i, 1_500],
  [/^gemini[ -]?cli/i, 550],
];

/** For Codex, which waits a minute, and for everybody we know nothing of. */
const otherwiseSeconds = 50;

/** Milliseconds that a client waits for a call before it should hear that the work goes on. */
export function patienceMs(client: string | undefined, overrideSeconds: number | undefined): number {
  const seconds = overrideSeconds ?? known.find(([name]) => name.test(client ?? ''))?.[1] ?? otherwiseSeconds;
  return seconds * 1_000;
}
