import {
  fileOptions,
  replyOptions,
  searchOptions,
  spendOptions,
  threadOptions,
  toolOptions,
} from './options/call-options.ts';
import { agentOptions, cliOptions, modelOptions, modelSourceOptions } from './options/model-options.ts';
import { operationOptions, telemetryOptions } from './options/operation-options.ts';
import { networkOptions, serverOptions, wsOptions } from './options/server-options.ts';

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
