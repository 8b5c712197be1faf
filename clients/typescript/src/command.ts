// One command that runs in the background, or ran.
import type { Client } from "./client.js";
import { CommandOutput } from "./events.js";
import type { CommandInfo, Operations } from "./types.js";

/** A command of a sandbox, by its id. It does not end with this object or its connection. */
export class Command {
  private readonly path: { id: string; command: string };

  constructor(
    private readonly client: Client,
    sandboxId: string,
    readonly id: string,
  ) {
    this.path = { id: sandboxId, command: id };
  }

  info(): Promise<CommandInfo> {
    return this.client.request("getCommand", { path: this.path });
  }

  /** Its output from these bytes on. follow: wait for more until it ends (default). */
  async output(query: Operations["streamOutput"]["query"] = {}): Promise<CommandOutput> {
    const open = (headers: Record<string, string>) =>
      this.client.open_events("streamOutput", { path: this.path, query, headers });
    return new CommandOutput(await open({}), (_, headers) => open(headers), this.id, query.follow ?? true);
  }

  /** Waits for its end. */
  async wait(): Promise<CommandInfo> {
    const info = await this.info();
    if (!info.running) return info;
    return (await this.output({ stdout_offset: info.stdout_bytes, stderr_offset: info.stderr_bytes })).wait();
  }

  /** Writes to its standard input, which it keeps if it was started with `keep_stdin`. close: that was all. */
  async write(data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
    const body = { ...encodeInput(data, "data", "encoding"), ...options };
    await this.client.request("writeStdin", { path: this.path, body });
  }

  /** Sends a signal, for example TERM. */
  async signal(signal: string): Promise<void> {
    await this.client.request("sendSignal", { path: this.path, body: { signal } });
  }

  /** Kills it and everything it started. */
  async kill(): Promise<void> {
    await this.client.request("stopCommand", { path: this.path });
  }
}

/** Input as fields of a request; bytes that may not be text go as base64. */
export function encodeInput(data: string | Uint8Array | undefined, name: string, encoding: string): Record<string, string> {
  if (data === undefined) return {};
  return typeof data === "string" ? { [name]: data } : { [name]: Buffer.from(data).toString("base64"), [encoding]: "base64" };
}
