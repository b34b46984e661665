const r = 'cAnArY7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0Js9AeUi3Oo';
const pem = `${r}${r}`.slice(0, 64);

/** The text as it might turn up, and the part of it that nobody may ever see. */
export const canaries: readonly (readonly [text: string, secret: string])[] = [
  [`Incorrect API key provided: sk-proj-${r}.`, r],
  [`sk-${r}`, r],
  [`x-api-key: sk-ant-api03-${r}`, r],
  [`sk-or-v1-${r}`, r],
  [`https://host/v1beta/models?key=AIza${r.slice(0, 35)}`, r.slice(0, 35)],
  [`xai-${r}`, r],
  [`gsk_${r}`, r],
  [`ghp_${r.slice(0, 36)}`, r.slice(0, 36)],
  [`github_pat_11AAAAAAA0${r}`, r],
  ['AKIACANARYCANARY0001', 'CANARYCANARY0001'],
  [`aws_secret_access_key=${r.slice(0, 40)}`, r.slice(0, 40)],
  [`xoxb-123456789012-${r}`, r],
  [`sk_live_${r}`, r],
  [`npm_${r.slice(0, 36)}`, r.slice(0, 36)],
  [`Authorization: Bearer ${r}`, r],
  [`eyJhbGciOiJIUzI1NiJ9.eyJ${r}.${r}`, r],
  [`https://canary:${r}@host/path`, r],
  [`-----BEGIN PRIVATE KEY-----\n${pem}\n${pem}\n-----END PRIVATE KEY-----`, pem],
  [`-----BEGIN OPENSSH PRIVATE KEY-----\n${pem}\n${pem.slice(0, 30)}`, pem.slice(0, 30)],
  [`api_key = "${r.slice(0, 32)}"`, r.slice(0, 32)],
  ['the canary of the operator: OPERATORCANARY', 'OPERATORCANARY'],
];

/** Answers with which a vendor, or what stands between, brings a text along: in headers, in JSON, as a page, as a bare text. */
export function carriers(text: string): { headers: Record<string, string>; body: unknown }[] {
  const line = text.replace(/\s+/g, ' ').slice(0, 6_000);
  return [
    {
      headers: { 'x-request-id': line, 'www-authenticate': `Bearer error="${line}"` },
      body: { error: { message: 'No.' } },
    },
    {
      headers: {},
      body: {
        error: {
          code: 400,
          message: text,
          type: text,
          status: text,
          details: [{ reason: text, metadata: { [text]: text } }],
        },
      },
    },
    { headers: { 'content-type': 'text/html' }, body: `<html><title>${line}</title><body>${text}</body></html>` },
    { headers: { 'content-type': 'text/plain' }, body: text },
  ];
}
