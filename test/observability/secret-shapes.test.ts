import { expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';
import { secretShapes } from '../support/secret-shapes.ts';

const mask = createMask({ secret: 'pepper', keys: [] });

it('masks every shape of a secret, alone and between other words', () => {
  const seen = secretShapes().flatMap(({ name, text, secret }) =>
    [text, `Some words.\n\n${text}\n\nMore words.\n`]
      .filter(each => mask.maskSync(each, 'thread').text.includes(secret))
      .map(() => name),
  );
  expect(seen).toEqual([]);
});

it.each([
  ['anthropic_key', 'sk-ant-api03-'],
  ['google_token', 'ya29.'],
  ['pypi_token', 'pypi-AgEIcHlwaS5vcmc'],
  ['mail_key', 'xkeysib-'],
  ['databricks_token', 'dapi'],
  ['vault_token', 'hvs.'],
  ['service_token', 'dp.pt.'],
  ['service_token', 'rubygems_'],
  ['shopify_token', 'shpat_'],
  ['atlassian_token', 'ATATT3'],
  ['notion_token', 'secret_'],
  ['newrelic_key', 'NRAK-'],
  ['age_key', 'AGE-SECRET-KEY-1'],
  ['twilio_key', 'SK'],
])('names the kind %s of what begins with %s', (kind, prefix) => {
  const shape = secretShapes().find(({ name }) => name === prefix);
  expect(mask.maskSync(shape?.text ?? '', 'thread').found).toEqual({ [kind]: 1 });
});

it.each([
  'key: sk-learn-preprocessing-standard-scaler is used.',
  'AKIA0000000000000000',
  'class="pat-container-with-many-words-and-no-digits"',
  'Bearer AuthenticationScheme',
  'password: $DB_PASSWORD',
  'https://user:$PASSWORD@host/path',
  'https://localhost:8080/a@b.example',
  'const token = request.headers.authorization',
  'd41d8cd98f00b204e9800998ecf8427e.min.css.map.old.gz',
  'token: process.env.SOME_SERVICE_TOKEN',
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
])('leaves %s as it is', text => {
  expect(mask.maskSync(text, 'thread').text).toBe(text);
});
