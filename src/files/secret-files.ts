/**
 * Files that hold credentials, as patterns: `*` stands for any characters within one name; a pattern with folders must
 * match the end of the path. Upper and lower case are the same. The list is part of the documentation.
 */
export const secretFiles: readonly { title: string; patterns: readonly string[] }[] = [
  { title: 'Environment files', patterns: ['.env', '.env.*', '.envrc'] },
  {
    title: 'Private keys and key stores',
    patterns: [
      'id_rsa',
      'id_dsa',
      'id_ecdsa',
      'id_ecdsa_sk',
      'id_ed25519',
      'id_ed25519_sk',
      '*.pem',
      '*.key',
      '*.p8',
      '*.p12',
      '*.pfx',
      '*.ppk',
      '*.jks',
      '*.keystore',
      '.ssh/*',
      '.gnupg/*',
      '.gnupg/private-keys-v1.d/*',
    ],
  },
  { title: 'Password databases', patterns: ['*.kdbx', '*.kdb', '.htpasswd', '.pgpass', '.my.cnf'] },
  {
    title: 'Credentials of tools',
    patterns: [
      '.npmrc',
      '.pypirc',
      '.netrc',
      '_netrc',
      '.git-credentials',
      '.dockercfg',
      '.docker/config.json',
      '.kube/config',
      '.aws/credentials',
      '.azure/accesstokens.json',
      '.azure/msal_token_cache.json',
      'application_default_credentials.json',
      'gcloud/credentials.db',
      'gcloud/access_tokens.db',
      'gh/hosts.yml',
      '.cargo/credentials',
      '.cargo/credentials.toml',
      '.gem/credentials',
      '.vault-token',
      '.s3cfg',
      '.boto',
    ],
  },
];

/** Files that match the list above and hold no secret all the same. */
export const harmlessFiles: readonly string[] = [
  '.env.example',
  '.env.*.example',
  '.env.sample',
  '.env.*.sample',
  '.env.template',
  '.env.*.template',
  '*.pub',
  '.ssh/config',
  '.ssh/known_hosts',
  '.ssh/known_hosts.old',
  '.ssh/authorized_keys',
];

const isListed = matcher(secretFiles.flatMap(group => group.patterns));
const isHarmless = matcher(harmlessFiles);
const copySuffix = /(?:~|\.bak|\.old|\.orig|\.save)$/;

/** Whether a path is on the list, judged by its names alone. Copies (`.env.bak`, `id_rsa~`) count as what they copy. */
export function isSecretFile(path: string): boolean {
  const names = path.toLowerCase().split(/[\\/]/).filter(Boolean);
  if (isHarmless(names)) return false;
  if (isListed(names)) return true;
  const name = names.pop() ?? '';
  return copySuffix.test(name) && isListed([...names, name.replace(copySuffix, '')]);
}

function matcher(patterns: readonly string[]): (names: readonly string[]) => boolean {
  const compiled = patterns.map(pattern => pattern.split('/').map(nameTest));
  return names =>
    compiled.some(tests => {
      const tail = names.slice(-tests.length);
      return tail.length === tests.length && tests.every((test, at) => test(tail[at] ?? ''));
    });
}

/** No pattern of the lists has more than one `*` in a name, so a prefix and a suffix are all there is to compare. */
function nameTest(pattern: string): (name: string) => boolean {
  const [before = '', after] = pattern.split('*');
  if (after === undefined) return name => name === pattern;
  return name => name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after);
}
