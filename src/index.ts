/** The library's door. */

export { z } from 'zod';
export type { ErrorCode, ErrorDetails, ErrorKind } from './domain/error.ts';
export {
  AppError,
  configError,
  inputError,
  isAppError,
  limitError,
  securityError,
  storageError,
} from './domain/error.ts';
export type { Message } from './domain/message.ts';
export type { ModelInfo } from './domain/model.ts';
export type { OptionSpec } from './domain/option.ts';
export type { Usage } from './domain/usage.ts';
export type { AgentTool, AgentToolCall, GateVerdict, PendingCall } from './engine/agent/agent.ts';
export type { ActionContext, ToolDefinition } from './engine/define.ts';
export { defineTool } from './engine/define.ts';
export { continuationId, filePaths, hiddenFields, modelField } from './engine/fields.ts';
export type { Extensions } from './extensions.ts';
export type { Conversation, ConversationOptions } from './library/conversation.ts';
export type { CallToolOptions, ListedModel, Polylogue } from './library/create-polylogue.ts';
export { createPolylogue } from './library/create-polylogue.ts';
export type { ErrorAnalysis, ErrorRequest, GeneratedPatch } from './library/diagnose.ts';
export type {
  PolylogueEvents,
  PolylogueOptions,
  SendDefaults,
  SendParams,
  SendRequest,
  SendResult,
  SystemLayers,
} from './library/options.ts';
export type { CompressedDiscussion, ShortenOptions, Summary } from './library/shorten.ts';
export type { TokenStats } from './library/tally.ts';
export type { Store, StoreAround, StoreDefinition } from './memory/store.ts';
export { defineStore } from './memory/store.ts';
export { createMemoryStore } from './memory/stores/memory.ts';
export type { ChatVendor } from './models/extras/chat-server.ts';
export { chatVendor } from './models/extras/chat-server.ts';
export type { CallParams, Connection, LanguageModel, ProviderDefinition, ProviderSettings } from './models/provider.ts';
export { defineProvider } from './models/provider.ts';
export { version } from './version.ts';
