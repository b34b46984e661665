import { describe, expect, it } from 'vitest';
import { harmlessFiles, isSecretFile, secretFiles } from '../../src/workspace/paths.ts';

describe('isSecretFile', () => {
  it.each([
    '/p/.env',
    '/p/.ENV',
    '/p/.env.local',
    '/p/.env.example.local',
    '/p/.env~',
    '/p/.env.bak',
    '/p/.envrc',
    ...['/p/prod.env', '/p/.env-prod', '/p/.env_local', '/p/.env copy', '/p/.ENV copy 2', '/p/prod.env.bak'],
    '/h/.ssh/id_rsa',
    '/p/id_ed25519',
    '/p/id_rsa.old',
    '/h/.ssh/anything',
    '/p/server.pem',
    '/p/tls.key',
    '/p/a.p12',
    '/p/a.pfx',
    '/h/.npmrc',
    '/h/.pypirc',
    '/h/.netrc',
    '/h/.git-credentials',
    '/h/.aws/credentials',
    '/h/.docker/config.json',
    '/h/.kube/config',
    '/h/.config/gcloud/application_default_credentials.json',
    ...['/p/credentials.json', '/p/client_secret_123.apps.googleusercontent.com.json', '/p/serviceAccountKey.json'],
    ...['/p/terraform.tfstate', '/p/terraform.tfstate.1700000000.backup', '/p/prod.tfstate', '/p/prod.tfstate.backup'],
    '/h/.terraform.d/credentials.tfrc.json',
    '/h/vault.kdbx',
    'C:\\Users\\x\\.aws\\credentials',
    'C:\\p\\.env::$DATA',
    'C:\\p\\server.pem. ',
    '/p/id_rsa.',
    // a colon is a part of the name everywhere but on Windows
    ...['/p/server:8443.pem', '/p/localhost:443.key', '/p/db:prod.kdbx', '/p/2026-11-25T10:00.key', '/p/a:b/.env'],
    ...['/p/.env.example:prod', '/p/a.pub:b.key', '/p/id_rsa:x.bak', '/h/.ssh/known_hosts:2', '/p/server:8443.PEM.'],
    ...['/p/server:8443.p\u200dem', '/p/server:8443.\uff50em', 'C:\\p\\.env.:$DATA', '/p/x:y.pem~'],
  ])('knows %s as secret', path => {
    expect(isSecretFile(path)).toBe(true);
  });

  it.each([
    '/p/.env.example',
    '/p/.env.sample',
    '/p/.env.template',
    '/p/.env.local.example',
    ...[
      '/p/example.env',
      '/p/app.sample.env',
      '/p/template.env',
      '/p/.env-example',
      '/p/.env_sample',
      '/p/.env-prod.template',
    ],
    '/p/env.ts',
    '/p/.environment',
    '/h/.ssh/id_rsa.pub',
    '/h/.ssh/config',
    '/h/.ssh/known_hosts',
    '/p/credentials.ts',
    ...['/p/main.tf', '/p/prod.tfvars', '/p/tfstate.md', '/p/my-credentials.json.md'],
    '/p/credentials',
    '/p/config.json',
    '/p/keys.ts',
    '/p/key',
    '/p/pem',
    '/p/.key/readme.md',
    '/p/docker/config.json',
    '/p/ssh/notes.md',
    '/p/x.bak',
    ...['/p/server:8443.md', '/p/key:1', 'C:\\p\\a.ts:hidden'],
    '/p/config',
  ])('lets %s be read', path => {
    expect(isSecretFile(path)).toBe(false);
  });

  it('publishes patterns that its matcher can express', () => {
    const all = [...secretFiles.flatMap(group => group.patterns), ...harmlessFiles];
    for (const pattern of all) {
      expect(pattern).toBe(pattern.toLowerCase());
      // one star a name; `.env.*.example` too
      for (const name of pattern.split('/')) expect(name.split('*').length).toBeLessThanOrEqual(2);
    }
  });
});
