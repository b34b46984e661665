/**
 * Markdown that makes no tags. What is code within its line stays as it is, and so does what is escaped already. A run of
 * backticks without an end in its line may end in a later one: up to the next empty line, nothing counts as code then.
 */
export function withoutTags(markdown: string): string {
  let open = false;
  const lines = markdown.split('\n').map(line => {
    if (/^[ \t]*$/.test(line)) open = false;
    const { text, ended } = lineWithoutTags(line, open);
    open ||= !ended;
    return text;
  });
  return lines.join('\n');
}

function lineWithoutTags(line: string, open: boolean): { text: string; ended: boolean } {
  const tokens = /\\|`+|<(?=[A-Za-z/!?])/g;
  const endOf = open ? () => undefined : codeEnds(line);
  let text = '';
  let from = 0;
  let ended = true;
  for (let found = tokens.exec(line); found; found = tokens.exec(line)) {
    const { 0: token, index } = found;
    if (token === '<') {
      text += `${line.slice(from, index)}\\`;
      from = index;
    } else if (token === '\\') {
      // What is escaped is no token.
      tokens.lastIndex = index + 2;
    } else {
      const end = endOf(index, token.length);
      ended &&= end !== undefined;
      tokens.lastIndex = end ?? index + token.length;
    }
  }
  return { text: text + line.slice(from), ended };
}

/** Where code ends that so many backticks begin: behind the next run of as many. Asked from left to right. */
function codeEnds(line: string): (start: number, length: number) => number | undefined {
  const starts = new Map<number, number[]>();
  for (const { 0: run, index } of line.matchAll(/`+/g)) {
    const same = starts.get(run.length);
    if (same) same.push(index);
    else starts.set(run.length, [index]);
  }
  const passed = new Map<number, number>();
  return (start, length) => {
    const same = starts.get(length) ?? [];
    let at = passed.get(length) ?? 0;
    while ((same[at] ?? Number.POSITIVE_INFINITY) <= start) at++;
    passed.set(length, at);
    const next = same[at];
    return next === undefined ? undefined : next + length;
  };
}
