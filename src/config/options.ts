import { toolOptions } from './options/call-options.ts';
import { modelOptions } from './options/model-options.ts';
import { operationOptions } from './options/operation-options.ts';
import { serverOptions } from './options/server-options.ts';
import { agentOptions } from './tables/agent-options.ts';
import { cliOptions } from './tables/cli-options.ts';
import { fileOptions } from './tables/file-options.ts';
import { modelSourceOptions } from './tables/model-source-options.ts';
import { networkOptions } from './tables/network-options.ts';
import { replyOptions } from './tables/reply-options.ts';
import { searchOptions } from './tables/search-options.ts';
import { spendOptions } from './tables/spend-options.ts';
import { telemetryOptions } from './tables/telemetry-options.ts';
import { threadOptions } from './tables/thread-options.ts';
import { wsOptions } from './tables/ws-options.ts';

/** Every setting of the product itself, by theme. Vendors' keys and addresses stand in the providers' own files. */
export const options = {
  ...modelOptions,
  ...modelSourceOptions,
  ...searchOptions,
  ...threadOptions,
  ...toolOptions,
  ...agentOptions,
  ...replyOptions,
  ...fileOptions,
  ...operationOptions,
  ...networkOptions,
  ...telemetryOptions,
  ...spendOptions,
  ...cliOptions,
  ...serverOptions,
  ...wsOptions,
};
