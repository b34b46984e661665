// The least that reads a streamed answer: its lines, the JSON in them, and one text. Prints the milliseconds of processor.
const [url = '', pieces = ''] = process.argv.slice(2);

async function read(count: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', body: `many pieces: ${count}` });
  let [rest, text] = ['', ''];
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const at = line.indexOf('{');
      if (at >= 0) text += JSON.parse(line.slice(at)).type ?? 'x';
    }
  }
  return text;
}

await read('1');
const before = process.cpuUsage();
await read(pieces);
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1_000);
