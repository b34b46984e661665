/** The library's door. */

/** The schema builder of the package `zod`, for the fields of tools. */
export { z } from 'zod';
export type { Extensions } from './app/extensions.ts';
export type { Conversation, ConversationOptions, TokenStats } from './app/library/conversation.ts';
export type { ErrorAnalysis, ErrorRequest, GeneratedPatch } from './app/library/diagnose.ts';
export type {
  ModelAsks,
  PolylogueEvents,
  PolylogueOptions,
  Retrieve,
  SendDefaults,
  SendParams,
  SendRequest,
  SendResult,
  SystemLayers,
} from './app/library/options.ts';
export type { CallToolOptions, LanguageModelOptions, ListedModel, Polylogue } from './app/library/polylogue.ts';
export { createPolylogue, estimateTokensAt as estimateTokens } from './app/library/polylogue.ts';
export type { CompressedDiscussion, ShortenOptions, Summary } from './app/library/shorten.ts';
export type { SendEvent } from './app/library/stream.ts';
export { continuationId, filePaths, hiddenFields, modelField } from './calls/fields.ts';
export type { ActionContext, ToolDefinition } from './calls/tool.ts';
export { defineTool } from './calls/tool.ts';
export type { ErrorCode, ErrorDetails, ErrorKind } from './core/errors.ts';
export {
  AppError,
  configError,
  inputError,
  isAppError,
  limitError,
  securityError,
  storageError,
} from './core/errors.ts';
export type { Message } from './core/message.ts';
export type { ModelInfo } from './core/model.ts';
export type { OptionSpec } from './core/option.ts';
export type { Usage } from './core/usage.ts';
export { version } from './core/version.ts';
export type { AgentToolCall, GateVerdict, PendingCall } from './engine/modes/agent/agent.ts';
export type { AgentTool } from './engine/modes/agent/local-tools/agent-tool.ts';
export type { CallParams, Connection, LanguageModel, ProviderDefinition, ProviderSettings } from './models/provider.ts';
export { defineProvider } from './models/provider.ts';
export type { ChatVendor } from './providers/shared/openai-dialect.ts';
export { chatVendor } from './providers/shared/openai-dialect.ts';
export { createMemoryStore } from './storage/memory/memory.ts';
export type { Store, StoreContext, StoreDefinition } from './storage/store.ts';
export { defineStore } from './storage/store.ts';
