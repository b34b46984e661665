/** The library's door. */

export type { ErrorCode, ErrorDetails, ErrorKind } from './domain/error.ts';
export { AppError, isAppError } from './domain/error.ts';
export { defineTool } from './engine/define.ts';
export type { Store } from './memory/store.ts';
export { defineProvider } from './models/provider.ts';
export { version } from './version.ts';
