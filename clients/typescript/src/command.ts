// A command in the background, running or finished.
import type { Client } from "./client.js";
import { CommandOutput } from "./events.js";
import type { CommandInfo, Operations } from "./types.js";

/** A command of a sandbox, by its id. It keeps running when this object or its connection is closed. */
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

  /** The output from these offsets on. follow: wait for more output until the command ends (default). */
  async output(query: Operations["streamOutput"]["query"] = {}): Promise<CommandOutput> {
    const open = (headers: Record<string, string>) =>
      this.client.open_events("streamOutput", { path: this.path, query, headers });
    return new CommandOutput(await open({}), (_, headers) => open(headers), this.id, query.follow ?? true);
  }

  /** Waits until the command ends. */
  async wait(): Promise<CommandInfo> {
    const info = await this.info();
    if (!info.running) return info;
    return (await this.output({ stdout_offset: info.stdout_bytes, stderr_offset: info.stderr_bytes })).wait();
  }

  /** Writes to standard input; the command must have been started with `keep_stdin`. close: close it afterwards. */
  async write(data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
    const body = { ...encodeInput(data, "data", "encoding"), ...options };
    await this.client.request("writeStdin", { path: this.path, body });
  }

  /** Sends a signal, for example TERM. */
  async signal(signal: string): Promise<void> {
    await this.client.request("sendSignal", { path: this.path, body: { signal } });
  }

  /** Kills the command and all its child processes. */
  async kill(): Promise<void> {
    await this.client.request("stopCommand", { path: this.path });
  }
}

/** The input as fields of a request; bytes that are not text are sent as base64. */
export function encodeInput(data: string | Uint8Array | undefined, name: string, encoding: string): Record<string, string> {
  if (data === undefined) return {};
  return typeof data === "string" ? { [name]: data } : { [name]: Buffer.from(data).toString("base64"), [encoding]: "base64" };
}
