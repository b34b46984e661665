import { describe, expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';

const mask = createMask({ secret: 'pepper', keys: [] });

describe('hostile text', () => {
  /** Milliseconds of this thread's own work; what is not linear takes a minute and more for a text of this length. */
  function workOf(text: string): number {
    const before = process.threadCpuUsage();
    mask.maskSync(text, 't');
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  }

  const length = 400_000;
  /** A megabyte would be given 12 s: what grows with the square of the length takes six times as long for it. */
  const mostMs = 2_000;
  const fill = (unit: string) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
  it.each(
    [
      'a',
      'A',
      ' ',
      '\\',
      '-',
      '=',
      '"',
      '/',
      '0',
      'eyJ',
      'eyJaaaaaaaaaa.',
      '\\neyJ',
      'sk-',
      'sk-ant-',
      'AKIAQ3EGTHZK4V2MPL7X ',
      '-----BEGIN PRIVATE KEY-----',
      '-----END PRIVATE KEY-----',
      `-----BEGIN PRIVATE KEY-----${'\\'.repeat(500)}`,
      '-----BEGIN ',
      '://',
      '://a:',
      '://a:b',
      'Bearer ',
      'authorization: basic ',
      'password = "',
      "pwd='abc",
      'password=aaaaa1 ',
      'secret: a1b2c3d4\n',
      `password='${'aA'.repeat(60)}!'`,
      `api_key: "${'a1-'.repeat(40)}!"`,
      'KEY=',
      '?key=',
      'secret_access_key=',
      '0123456789abcdef0123456789abcdef.',
      'xoxb-',
      'A_',
      '12345678:AA',
      'SG.aaaaaaaaaaaaaaaaaaaaaaaa.',
      '%3D',
      'Version: ',
      ...[
        'pass="a ',
        'pass="  :',
        ':aaaa@tcp(',
        "define('A_A_A_KEY','",
        'auth=("a","',
        'base64:',
        '_key=base64:',
        'set -gx a_api_key ',
      ],
      ...[
        '+ASt',
        `${'a'.repeat(76)}JQQJ99`,
        'Fe26.2**',
        'sk-lf-',
        'password: a\\n',
        '\\npassword: ab1\\n',
        '?code=aaaaaaaaaaaaaaaaaaaa',
      ],
      ...[
        `${btoa('password=abc123;'.repeat(3))}\n`,
        btoa('ghp_'.repeat(12)),
        btoa('A'.repeat(54)),
        `${btoa('plain text 12')}\\n`,
      ],
      `secret: "${'!@#$a1'.repeat(20)}" `,
    ].map((unit): [string] => [unit]),
  )('is gone through in linear time: %j', unit => {
    const text = fill(unit);
    mask.maskSync(text.slice(0, 10_000), 't');
    // 0.3 s at most.
    expect(workOf(text)).toBeLessThan(mostMs);
  });

  it('is gone through in linear time after the mark of a private key', () => {
    for (const unit of ['\\', '\\n', ' ', 'A ', '│', '1', '+ ', 'Version: \n', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n']) {
      expect(workOf(`-----BEGIN PRIVATE KEY-----${fill(unit)}-----END PRIVATE KEY-----`), unit).toBeLessThan(mostMs);
    }
  });
});
