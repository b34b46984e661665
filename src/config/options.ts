import { callOptions } from './options/call-options.ts';
import { modelOptions } from './options/model-options.ts';
import { operationOptions } from './options/operation-options.ts';
import { serverOptions } from './options/server-options.ts';

/** Every setting of the product itself, by theme. Vendors' keys and addresses stand in the providers' own files. */
export const options = { ...modelOptions, ...callOptions, ...operationOptions, ...serverOptions };
