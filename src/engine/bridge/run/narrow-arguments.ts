/** Arguments of a configuration without those that let a CLI do more than read. */
export function narrowed(
  args: readonly string[],
  widening: Readonly<Record<string, number>>,
): { kept: string[]; leftOut: string[] } {
  const kept: string[] = [];
  const leftOut: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const name = arg.split('=', 1)[0] ?? '';
    const values = Object.hasOwn(widening, name) ? widening[name] : undefined;
    if (values === undefined && !widensSettings(arg, args[at - 1])) kept.push(arg);
    else {
      leftOut.push(arg);
      // The flag in front of a setting goes with it.
      if (values === undefined && kept.at(-1) === args[at - 1]) kept.pop();
      else if (!arg.includes('=')) {
        leftOut.push(...args.slice(at + 1, at + 1 + (values ?? 0)));
        at += values ?? 0;
      }
    }
  }
  return { kept, leftOut };
}

/** `-c sandbox_mode="danger-full-access"` and its like. */
function widensSettings(arg: string, before: string | undefined): boolean {
  const setting = /^(?:-c|--config)=?(.*)$/.exec(arg)?.[1] || (before === '-c' || before === '--config' ? arg : '');
  return /^\s*["']?(?:sandbox|approval|permission|default_permissions|mcp_servers|hooks|projects|notify)/i.test(
    setting,
  );
}

/** Flags that may be given more than once. */
const repeatable = new Set(['-c', '--config', '--enable', '--disable']);

/** Arguments of a configuration without the flags that are given anyway, which some CLIs refuse twice; their values go with them. */
export function withoutRepeats(args: readonly string[], given: readonly string[]): string[] {
  const fresh: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const name = arg.split('=', 1)[0] ?? '';
    const place = name.startsWith('-') && !repeatable.has(name) ? given.indexOf(name) : -1;
    if (place === -1) fresh.push(arg);
    else if (!arg.includes('=') && given[place + 1]?.startsWith('-') === false) at++;
  }
  return fresh;
}
