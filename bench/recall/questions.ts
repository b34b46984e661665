/** Questions as somebody new to this repository asks them, and the files that answer them: one of them is enough. */
export const questions: readonly { question: string; answers: readonly string[] }[] = [
  {
    question: 'Which files may a caller read, and what is refused?',
    answers: ['src/workspace/sandbox.ts', 'src/workspace/paths.ts'],
  },
  {
    question: 'How are secrets replaced by placeholders before a text is sent?',
    answers: ['src/observability/secret-masking.ts'],
  },
  { question: 'How does a conversation get shorter when it no longer fits?', answers: ['src/threads/compaction.ts'] },
  { question: 'When does the breaker of a provider open?', answers: ['src/models/resilience/breaker.ts'] },
  {
    question: 'How long is waited before a failed request is sent again?',
    answers: ['src/models/resilience/policy.ts'],
  },
  {
    question: 'How is a misspelt model name corrected?',
    answers: ['src/models/routing/resolve.ts', 'src/models/routing/eligible-models.ts', 'src/models/routing/names.ts'],
  },
  { question: 'Where is the number of tokens of a text estimated?', answers: ['src/core/tokens.ts'] },
  {
    question: 'How are gitignore rules applied to folders?',
    answers: ['src/workspace/ignore-rules.ts', 'src/workspace/walk.ts'],
  },
  {
    question: 'What happens when the database file is damaged?',
    answers: ['src/storage/sqlite/open.ts', 'src/storage/sqlite/salvage.ts'],
  },
  {
    question: 'How does a long call become a job that the client asks for later?',
    answers: ['src/calls/durable/long-calls.ts', 'src/calls/durable/jobs.ts'],
  },
  {
    question: 'How are the verdicts of several models brought together?',
    answers: [
      'src/engine/modes/ask-many/verdicts.ts',
      'src/engine/modes/ask-many/panel-reply.ts',
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
    answers: ['src/cli/commands/stdio.ts', 'src/server/mcp/stdio.ts', 'src/app/app.ts'],
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
  { question: 'How is the price of an answer computed?', answers: ['src/core/usage.ts'] },
  {
    question: 'How are the tokens of callers checked, and what happens after many wrong ones?',
    answers: ['src/server/access/tokens.ts', 'src/server/access/wrong-tokens.ts', 'src/server/access/admission.ts'],
  },
  {
    question: 'Which pages in a browser may talk to the server?',
    answers: ['src/server/access/addresses.ts', 'src/server/access/admission.ts', 'src/server/http/router.ts'],
  },
  { question: 'How is a thread exported as a web page?', answers: ['src/threads/transfer/export-html.ts'] },
  {
    question: 'Which commands may the agent run on this machine?',
    answers: [
      'src/engine/modes/agent/local-tools/command-policy.ts',
      'src/engine/modes/agent/local-tools/command-policy.ts',
    ],
  },
  {
    question: 'How does a WebSocket client get a result that was ready while it was disconnected?',
    answers: [
      'src/server/websocket/kept-results.ts',
      'src/server/websocket/session.ts',
      'src/server/websocket/frame-call.ts',
    ],
  },
  {
    question: 'Where is the limit on what may be spent in a day enforced?',
    answers: ['src/models/spend-meter.ts', 'src/models/budget.ts', 'src/core/usage.ts', 'src/storage/sqlite/spend.ts'],
  },
  { question: 'What are the keys in Redis called?', answers: ['src/storage/redis/keys.ts'] },
  {
    question: 'Which errors of a provider are worth a retry?',
    answers: [
      'src/models/resilience/classify-error.ts',
      'src/models/resilience/errors.ts',
      'src/models/resilience/policy.ts',
    ],
  },
  {
    question: 'How does the tracer find who calls a function?',
    answers: [
      'src/workspace/call-graph/resolve-calls.ts',
      'src/workspace/call-graph/call-graph.ts',
      'src/workspace/call-graph/tracer.ts',
      'src/workspace/call-graph/trace.ts',
    ],
  },
  {
    question: 'How is a patch checked before it is applied?',
    answers: ['src/workspace/git/check-patch.ts', 'src/workspace/git/apply-patch.ts', 'src/workspace/git/patch.ts'],
  },
  {
    question: 'In which order do settings files and environment variables override each other?',
    answers: ['src/config/layers.ts', 'src/config/load.ts', 'src/config/settings-files.ts'],
  },
  {
    question: 'How does init edit the configuration file of a host?',
    answers: ['src/cli/init/edit-config.ts', 'src/cli/init/hosts.ts', 'src/cli/commands/init.ts'],
  },
  { question: 'When is a log file rotated?', answers: ['src/observability/file-logs.ts'] },
  {
    question: 'How is it recognized that a question needs current facts from the web?',
    answers: ['src/models/routing/freshness.ts', 'src/models/routing/freshness-phrases.ts'],
  },
  {
    question: 'How does the stdio bridge reconnect when the daemon was restarted?',
    answers: [
      'src/server/proxy/relay.ts',
      'src/server/proxy/proxy.ts',
      'src/server/proxy/websocket-link.ts',
      'src/server/proxy/start-daemon.ts',
    ],
  },
];
