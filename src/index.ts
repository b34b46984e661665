/** The library's door. */

/** The schema builder of the package `zod`, for the fields of tools. */
export { z } from 'zod';
export type { Extensions } from './app/extensions.ts';
export type { Conversation, ConversationOptions, Emitter, TokenStats, TokenUse } from './app/library/conversation.ts';
export type { ErrorAnalysis, ErrorRequest, GeneratedPatch } from './app/library/diagnose.ts';
export type {
  ModelAsks,
  Owned,
  PolylogueEvents,
  PolylogueOptions,
  Retrieve,
  Retrieved,
  SendDefaults,
  SendParams,
  SendRequest,
  SendResult,
  SystemLayers,
} from './app/library/options.ts';
export type {
  CallToolOptions,
  CommsEntry,
  LanguageModelOptions,
  ListedModel,
  Polylogue,
} from './app/library/polylogue.ts';
export { createPolylogue, estimateTokensAt as estimateTokens } from './app/library/polylogue.ts';
export type { CompressedDiscussion, ShortenOptions, Summary } from './app/library/shorten.ts';
export type { SendEvent } from './app/library/stream.ts';
export { continuationId, filePaths, hiddenFields, modelField } from './calls/fields.ts';
export type { ActionContext, ToolDefinition } from './calls/tool.ts';
export { defineTool } from './calls/tool.ts';
export type { ErrorCode, ErrorDetails, ErrorKind, Fault, FaultScope, FieldError } from './core/errors.ts';
export {
  AppError,
  configError,
  inputError,
  isAppError,
  limitError,
  securityError,
  storageError,
} from './core/errors.ts';
export type { Skip, SkipCode } from './core/file.ts';
export type { Json, JsonObject } from './core/json.ts';
export type { Message, Part, SaidPart, ToolCall, ToolResult, VendorFacts } from './core/message.ts';
export type { Effort, InputKind, ModelInfo, ModelLife, Price, PriceTier, Rates } from './core/model.ts';
export type { OptionSpec } from './core/option.ts';
export type { ExchangeFilter, ExchangeLine, ExchangeNote, ExchangeRecord } from './core/ports.ts';
export type { ProgressUpdate } from './core/tool-host.ts';
export type { Fee, FeeKind, Fees, Usage } from './core/usage.ts';
export { version } from './core/version.ts';
export type { AgentEvent, AgentToolCall, GateVerdict, PendingCall } from './engine/modes/agent/agent.ts';
export type {
  AgentEffect,
  AgentTool,
  Approval,
  ArgsVerdict,
  ToolOutput,
  ToolSurroundings,
} from './engine/modes/agent/local-tools/agent-tool.ts';
export type { CallParams, Connection, LanguageModel, ProviderDefinition, ProviderSettings } from './models/provider.ts';
export { defineProvider } from './models/provider.ts';
export type { ChatVendor } from './providers/shared/openai-dialect.ts';
export { chatVendor } from './providers/shared/openai-dialect.ts';
export { createMemoryStore } from './storage/memory/memory.ts';
export type { Store, StoreContext, StoreDefinition } from './storage/store.ts';
export { defineStore } from './storage/store.ts';
