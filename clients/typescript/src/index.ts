// Sandboxes of a caisson server. Without an address it uses the user's own server and starts it if needed.
export { Client } from "./client.js";
export type { ClientOptions } from "./client.js";
export { Command } from "./command.js";
export * from "./errors.js";
export { CommandOutput, Events } from "./events.js";
export type { Output } from "./events.js";
export { Files } from "./files.js";
export { Network } from "./network.js";
export { Sandbox } from "./sandbox.js";
export type { CommandLine, CommitOptions, CreateOptions, RunOptions, StartOptions, StreamOptions } from "./sandbox.js";
export { Terminal } from "./terminal.js";
export type * from "./types.js";
