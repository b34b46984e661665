import { expect, it } from 'vitest';
import { traceSettings } from '../../src/config/derived-settings.ts';
import { loadConfig } from '../../src/config/load.ts';
import { options } from '../../src/config/options.ts';

function settingsOf(env: Record<string, string>) {
  const surroundings = { argvFlags: {}, homeDir: '/home/ann', platform: 'linux', cwd: '/p', readFile: () => undefined };
  return traceSettings(loadConfig({ tables: { app: options }, env, ...surroundings }).values.app);
}

const endpoint = 'http://collector.example:4318';
const usual = { url: `${endpoint}/v1/traces`, headers: {}, resource: { 'service.name': 'polylogue' } };

it('sends traces only where somebody asked for them', () => {
  expect(settingsOf({})).toEqual({});
  expect(settingsOf({ OTEL_SERVICE_NAME: 'x' })).toEqual({});
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
  expect(settingsOf(env)).toEqual({ traces: { ...usual, sampleRatio: 1, asCallers: true, content: false } });
  expect(settingsOf({ OTEL_TRACES_EXPORTER: 'otlp' }).traces?.url).toBe('http://localhost:4318/v1/traces');
  expect(settingsOf({ ...env, OTEL_SDK_DISABLED: 'TRUE' })).toEqual({});
  for (const OTEL_TRACES_EXPORTER of ['none', 'console, zipkin']) {
    expect(settingsOf({ ...env, OTEL_TRACES_EXPORTER })).toEqual({});
  }
});

it('takes headers and attributes in percent-encoding, those for traces before the others', () => {
  const { traces } = settingsOf({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/mine`,
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1, b=x%20y ,broken,c=100%',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=2',
    OTEL_RESOURCE_ATTRIBUTES: 'team=core,service.name=not-this-one',
  });
  expect(traces).toMatchObject({
    url: `${endpoint}/mine`,
    headers: { a: '2', b: 'x y', c: '100%' },
    resource: { team: 'core', 'service.name': 'polylogue' },
  });
});

it.each([
  [{ OTEL_TRACES_SAMPLER_ARG: '0.25' }, 0.25, true],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, 0, true],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' }, 0.5, false],
  [{ OTEL_TRACES_SAMPLER: 'always_off' }, 0, false],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on', OTEL_TRACES_SAMPLER_ARG: '0.1' }, 1, true],
  [{ OTEL_TRACES_SAMPLER: 'jaeger_remote', OTEL_TRACES_SAMPLER_ARG: 'endpoint=http://localhost:14250' }, 1, false],
  [{ OTEL_TRACES_SAMPLER_ARG: '7' }, 1, true],
])('reads from %j the part of calls that is traced, and whether callers have a say', (env, sampleRatio, asCallers) => {
  const { traces } = settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...env });
  expect(traces).toMatchObject({ sampleRatio, asCallers });
});

it.each([
  ['true', true],
  ['SPAN_AND_EVENT', true],
  ['span_only', true],
  ['EVENT_ONLY', false],
  ['NO_CONTENT', false],
  ['false', false],
])('puts texts into spans where it says %s: %s', (value, content) => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: value };
  expect(settingsOf(env).traces?.content).toBe(content);
});

it.each<Record<string, string>>([
  { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: 'unix:///run/otel.sock' },
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
])('starts without traces, and says why, where they can’t be sent: %j', env => {
  expect(settingsOf(env)).toEqual({ wrong: expect.stringMatching(/^No traces are sent: .*set OTEL_/) });
});
