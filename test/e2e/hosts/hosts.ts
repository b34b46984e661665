import { hostClis } from '../../../scripts/test-needs/host-clis.ts';
import type { TestCli } from '../../../scripts/test-needs/provide-clis.ts';

type Settings = Record<string, unknown>;

/** How a host is driven without a terminal. */
export interface TestHost {
  /** As `init --client` takes it. */
  client: keyof typeof hostClis;
  title: string;
  cli: TestCli;
  /** Its model's address and what else it needs, in its environment. */
  env(model: string): Record<string, string>;
  /** What goes into the file that `init` wrote: approval of the tools, and the scripted model where only a file can name it. */
  settings?: { file: string; amend(settings: Settings, model: string): Settings };
  /** The same for a file of lines. */
  lines?: { file: string; text: string };
  args(prompt: string, model: string): string[];
  /** A slash command with words behind it; absent: it has none without a terminal. */
  slash?(name: string, words: string): string[];
}

const gemini = ['--yolo', '--skip-trust', '-m', 'gemini-2.5-flash'];
const claude = ['--allowedTools', 'mcp__polylogue'];
const qwen = ['--yolo', '--auth-type', 'openai', '-m', 'qwen3-coder'];

export const testHosts: readonly TestHost[] = [
  {
    client: 'claude',
    title: 'Claude Code',
    cli: hostClis.claude,
    env: model => ({
      ANTHROPIC_API_KEY: 'test-key',
      ANTHROPIC_BASE_URL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // It defers tools and looks them up when they are wanted; then the first request lists none.
      ENABLE_TOOL_SEARCH: 'false',
      // On a crowded machine it would begin without a server that is slower than five seconds.
      MCP_CONNECTION_NONBLOCKING: '0',
      MCP_CONNECT_TIMEOUT_MS: '60000',
      MCP_TIMEOUT: '60000',
    }),
    args: prompt => ['-p', prompt, ...claude],
    slash: (name, words) => ['-p', `/mcp__polylogue__${name} ${words}`, ...claude],
  },
  {
    client: 'codex',
    title: 'Codex',
    cli: hostClis.codex,
    env: () => ({ SCRIPTED_KEY: 'test-key' }),
    lines: { file: '.codex/config.toml', text: 'default_tools_approval_mode = "approve"\nrequired = true\n' },
    args: (prompt, model) => {
      const address = `base_url="${model}/v1",env_key="SCRIPTED_KEY",wire_api="responses"`;
      const provider = `model_providers.scripted={name="scripted",${address},request_max_retries=0,stream_max_retries=0}`;
      const chosen = ['-c', 'model_provider="scripted"', '-c', 'model="gpt-5"'];
      return ['exec', '--skip-git-repo-check', '-c', provider, ...chosen, prompt];
    },
  },
  {
    client: 'gemini',
    title: 'Gemini CLI',
    cli: hostClis.gemini,
    // Without the last one it starts itself a second time, for a larger heap.
    env: model => ({ GEMINI_API_KEY: 'test-key', GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_NO_RELAUNCH: 'true' }),
    settings: {
      file: '.gemini/settings.json',
      amend: settings => ({
        ...settings,
        security: { auth: { selectedType: 'gemini-api-key' } },
        general: { disableAutoUpdate: true },
        privacy: { usageStatisticsEnabled: false },
      }),
    },
    args: prompt => ['-p', prompt, ...gemini],
    slash: (name, words) => ['-p', `/${name} ${words}`, ...gemini],
  },
  {
    client: 'opencode',
    title: 'OpenCode',
    cli: hostClis.opencode,
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    settings: {
      file: '.config/opencode/opencode.json',
      amend: (settings, model) => ({
        ...settings,
        model: 'scripted/scripted',
        small_model: 'scripted/scripted',
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Scripted',
            options: { baseURL: `${model}/v1`, apiKey: 'test-key' },
            models: { scripted: { name: 'Scripted', tool_call: true } },
          },
        },
      }),
    },
    args: prompt => ['run', prompt],
    slash: (name, words) => ['run', '--command', `polylogue:${name}`, ...words.split(' ')],
  },
  {
    client: 'qwen',
    title: 'Qwen Code',
    cli: hostClis.qwen,
    env: model => ({ OPENAI_API_KEY: 'test-key', OPENAI_BASE_URL: `${model}/v1` }),
    settings: {
      file: '.qwen/settings.json',
      // It looks tools up when they are wanted, as Claude Code does.
      amend: settings => ({ ...settings, tools: { toolSearch: { enabled: false } } }),
    },
    args: prompt => ['-p', prompt, ...qwen],
    slash: (name, words) => ['-p', `/${name} ${words}`, ...qwen],
  },
];
