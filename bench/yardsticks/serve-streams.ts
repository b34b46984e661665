import { WebSocketServer } from 'ws';

const gatherMs = 40;

/**
 * Answers calls of a tool over WebSocket with what `ask` tells piece by piece: the first words at once, then what came within 40 ms. No
 * limits, no memory, no masking. Tells on stderr where it listens.
 */
export function serveStreams(ask: (prompt: string, onText: (text: string) => void) => Promise<void>): void {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  server.once('listening', () => {
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : '';
    process.stderr.write(`listening on http://127.0.0.1:${port}\n`);
  });
  server.on('connection', socket => {
    const answer = async (data: string) => {
      const { op, request_id, arguments: args } = JSON.parse(data);
      const send = (frame: object) => socket.send(JSON.stringify({ request_id, ...frame }));
      if (op === 'hello') return send({ op: 'hello_ack' });
      let text = '';
      let timer: NodeJS.Timeout | undefined;
      const flush = () => {
        if (text !== '') send({ op: 'stream_chunk', text });
        text = '';
      };
      await ask(args.prompt, delta => {
        text += delta;
        if (timer) return;
        flush();
        timer = setTimeout(() => {
          timer = undefined;
          flush();
        }, gatherMs);
      });
      clearTimeout(timer);
      flush();
      send({ op: 'call_tool_res' });
    };
    socket.on('message', data => {
      answer(data.toString()).catch(error =>
        socket.send(JSON.stringify({ op: 'call_tool_res', error: String(error) })),
      );
    });
  });
  process.once('SIGTERM', () => process.exit());
}
