import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';

const oneValue = z.union([
  z.strictObject({ stringValue: z.string() }),
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ intValue: z.union([z.number().int(), z.string().regex(/^-?\d+$/)]) }),
  z.strictObject({ doubleValue: z.number() }),
]);
const anyValue = z.union([oneValue, z.strictObject({ arrayValue: z.strictObject({ values: z.array(oneValue) }) })]);
const attributes = z.array(z.strictObject({ key: z.string().min(1), value: anyValue }));
const nanos = z.string().regex(/^[1-9]\d{18}$/);
const spanShape = z.strictObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  traceState: z.string().optional(),
  name: z.string().min(1),
  kind: z.number().int().min(0).max(5),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes,
  droppedAttributesCount: z.number(),
  events: z.array(
    z.strictObject({ name: z.string(), timeUnixNano: nanos, attributes, droppedAttributesCount: z.number() }),
  ),
  droppedEventsCount: z.number(),
  status: z.strictObject({ code: z.number().int().min(0).max(2), message: z.string().optional() }),
  links: z.array(z.looseObject({ traceId: z.string(), spanId: z.string() })),
  droppedLinksCount: z.number(),
  flags: z.number().optional(),
});
/** ExportTraceServiceRequest in OTLP's JSON. */
const exportShape = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes, droppedAttributesCount: z.number() }),
      schemaUrl: z.string().optional(),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string().optional() }),
          schemaUrl: z.string().optional(),
          spans: z.array(spanShape),
        }),
      ),
    }),
  ),
});

/** A span as it arrived, its attributes by name. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  traceState?: string;
  /** Ids of the spans that it is linked to. */
  links: string[];
  name: string;
  /** 2: server, 3: client. */
  kind: number;
  /** Milliseconds. */
  took: number;
  /** 0: unset, 2: error. */
  status: number;
  attributes: Record<string, unknown>;
  events: { name: string; attributes: Record<string, unknown> }[];
  resource: Record<string, unknown>;
}

export interface OtlpReceiver {
  /** Base address, without `/v1/traces`. */
  url: string;
  spans: ReceivedSpan[];
  requests: { path: string; headers: IncomingHttpHeaders; body: string }[];
  /** What a collector would have refused. */
  violations: string[];
  /** Answers with this status from now on. */
  answer(status: number): void;
  close(): Promise<void>;
}

/** A collector for traces in OTLP/HTTP with JSON that takes what the protocol says and nothing else. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: OtlpReceiver['requests'] = [];
  const violations: string[] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const raw = Buffer.concat(chunks);
    const body = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw).toString('utf8');
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    if (request.method !== 'POST') violations.push(`${request.method} instead of POST`);
    if (request.headers['content-type'] !== 'application/json') violations.push('no application/json');
    const read = exportShape.safeParse(JSON.parse(body));
    if (!read.success) violations.push(z.prettifyError(read.error));
    else if (status === 200) spans.push(...spansIn(read.data));
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}');
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    requests,
    violations,
    answer: next => {
      status = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

function spansIn({ resourceSpans }: z.infer<typeof exportShape>): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(span => ({
        traceId: span.traceId,
        spanId: span.spanId,
        ...(span.parentSpanId && { parentSpanId: span.parentSpanId }),
        ...(span.traceState && { traceState: span.traceState }),
        links: span.links.map(({ traceId, spanId }) => `${traceId} ${spanId}`),
        name: span.name,
        kind: span.kind,
        took: Number((BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1_000_000n),
        status: span.status.code,
        attributes: valuesOf(span.attributes),
        events: span.events.map(({ name, attributes: own }) => ({ name, attributes: valuesOf(own) })),
        resource: valuesOf(resource.attributes),
      })),
    ),
  );
}

function valuesOf(list: z.infer<typeof attributes>): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, oneOf(value)]));
}

function oneOf(value: z.infer<typeof anyValue>): unknown {
  if ('arrayValue' in value) return value.arrayValue.values.map(oneOf);
  return 'intValue' in value ? Number(value.intValue) : Object.values(value)[0];
}
