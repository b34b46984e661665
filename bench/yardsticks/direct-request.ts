/** The same question without a server between: one request, read to its end. */
export async function directRequest(vendorUrl: string): Promise<string> {
  const response = await fetch(`${vendorUrl}/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer test-key' },
    body: JSON.stringify({
      model: 'gpt-5',
      stream: true,
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'What is the shortest answer?' }] }],
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the vendor answered ${response.status}`);
  return text;
}
