/** `legacy`: 2025 clients, which say who they are when they connect. `modern`: 2026 ones, which say so with each request. */
export type Era = 'legacy' | 'modern';
