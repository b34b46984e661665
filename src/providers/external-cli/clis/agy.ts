import type { CliDefinition } from './cli.ts';

/** Google's Antigravity CLI. It takes its prompt as an argument, answers in plain text, and does not tell its sessions. */
export const agy: CliDefinition = {
  name: 'agy',
  title: 'Antigravity CLI',
  window: 200_000,
  command: ({ model, mayWrite }, extra) => [
    ...(mayWrite ? [] : ['--sandbox']),
    ...(model === undefined ? [] : ['--model', model]),
    ...extra,
    '-p',
  ],
  widening: ['--dangerously-skip-permissions', '--add-dir='],
  promptBy: 'last',
  parser: 'text',
  env: ['ANTIGRAVITY_*', 'GEMINI_API_KEY', 'GOOGLE_*'],
  login: /not (?:logged|signed) in|please (?:log|sign) in|sign in to continue|authentication required|login required/i,
  loginHint: 'Run "agy" once in a terminal and sign in.',
};
