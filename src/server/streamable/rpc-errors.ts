function rpcError(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status });
}

export function noSession(): Response {
  return rpcError(400, -32_000, 'Begin with "initialize", or send the Mcp-Session-Id header of the session.');
}

export function unknownSession(): Response {
  return rpcError(404, -32_001, 'There is no such session. Begin a new one with "initialize".');
}

export function noRoom(): Response {
  return later(rpcError(503, -32_000, 'There are too many sessions. Try again later.'));
}

export function noShare(what: 'sessions' | 'streams'): Response {
  const message = `Your token has as many ${what} as one token may have at a time. End one, or ask the operator for more (POLYLOGUE_SESSIONS_PER_TOKEN).`;
  return later(rpcError(429, -32_000, message));
}

function later(response: Response): Response {
  response.headers.set('Retry-After', '5');
  return response;
}
