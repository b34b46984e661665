const { VENDOR_URL = '' } = process.env;

/** Asks the vendor at VENDOR_URL: one fetch, whose events are parsed as they come. No library, no checks. */
export async function ask(prompt: string, onText: (text: string) => void): Promise<void> {
  const input = [{ role: 'user', content: [{ type: 'input_text', text: prompt }] }];
  const response = await fetch(`${VENDOR_URL}/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test-key' },
    body: JSON.stringify({ model: 'gpt-5', stream: true, input }),
  });
  if (!response.ok || !response.body) throw new Error(`the vendor answered ${response.status}`);
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue;
      const event = JSON.parse(line.slice(6));
      if (event.type === 'response.output_text.delta') onText(event.delta);
    }
  }
}
