/** Questions as somebody new to this repository asks them, and the files that answer them: one of them is enough. */
export const questions: readonly { question: string; answers: readonly string[] }[] = [
  {
    question: 'Which files may a caller read, and what is refused?',
    answers: ['src/workspace/sandbox.ts', 'src/workspace/paths.ts'],
  },
  {
    question: 'How are secrets replaced by placeholders before a text is sent?',
    answers: ['src/observability/secret-masking.ts', 'src/observability/secret-masking.ts'],
  },
  {
    question: 'How does a conversation get shorter when it no longer fits?',
    answers: ['src/threads/compaction.ts', 'src/threads/compaction.ts'],
  },
  {
    question: 'When does the breaker of a provider open?',
    answers: ['src/models/resilience/breaker.ts', 'src/models/resilience/breaker.ts'],
  },
  {
    question: 'How long is waited before a failed request is sent again?',
    answers: ['src/models/resilience/policy.ts', 'src/models/resilience/policy.ts'],
  },
  {
    question: 'How is a misspelt model name corrected?',
    answers: ['src/models/routing/resolve.ts', 'src/models/routing/eligible-models.ts', 'src/models/routing/names.ts'],
  },
  {
    question: 'Where is the number of tokens of a text estimated?',
    answers: ['src/core/tokens.ts', 'src/domain/estimate/prices.ts', 'src/core/tokens.ts'],
  },
  {
    question: 'How are gitignore rules applied to folders?',
    answers: ['src/workspace/ignore-rules.ts', 'src/workspace/walk.ts'],
  },
  {
    question: 'What happens when the database file is damaged?',
    answers: ['src/storage/sqlite/open.ts', 'src/storage/sqlite/salvage.ts', 'src/storage/sqlite/open.ts'],
  },
  {
    question: 'How does a long call become a job that the client asks for later?',
    answers: ['src/calls/durable/long-calls.ts', 'src/calls/durable/jobs.ts', 'src/calls/durable/long-calls.ts'],
  },
  {
    question: 'How are the verdicts of several models brought together?',
    answers: [
      'src/engine/modes/ask-many/verdicts.ts',
      'src/engine/modes/ask-many/verdicts.ts',
      'src/engine/modes/ask-many/synthesis.ts',
      'src/engine/modes/ask-many/panel.ts',
      'src/engine/modes/ask-many/panel-prompts.ts',
    ],
  },
  {
    question: 'Which git commands are run, and what may a repository not do?',
    answers: ['src/workspace/git/run-git.ts', 'src/workspace/git/repositories.ts'],
  },
  {
    question: 'How is a file that changed on disk sent again as a diff?',
    answers: [
      'src/calls/ask/prompt.ts',
      'src/workspace/diff.ts',
      'src/threads/transcript.ts',
      'src/workspace/read-file.ts',
    ],
  },
  {
    question: 'How much of the window is for files, for history and for the answer?',
    answers: ['src/threads/compaction.ts'],
  },
  {
    question: 'How is a Python file parsed for the classes it declares?',
    answers: ['src/workspace/outline/python.ts'],
  },
  {
    question: 'How does the server shut down on a signal?',
    answers: ['src/cli/commands/stdio.ts', 'src/server/stdio.ts', 'src/app/app.ts'],
  },
  { question: 'Where is the data folder on macOS and Windows?', answers: ['src/config/home.ts'] },
  {
    question: 'How are images checked and how large may a picture be?',
    answers: ['src/workspace/read-file.ts', 'src/calls/ask/prompt.ts'],
  },
  {
    question: 'What keeps two processes from working on one thread at once?',
    answers: ['src/threads/threads.ts', 'src/core/concurrency.ts', 'src/storage/sqlite/tables.ts'],
  },
  {
    question: 'How is the price of an answer computed?',
    answers: ['src/models/price.ts', 'src/models/asking/price.ts', 'src/models/routing/price.ts', 'src/core/usage.ts'],
  },
];
