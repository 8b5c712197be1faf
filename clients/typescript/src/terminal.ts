// A terminal in a sandbox, over a WebSocket.
import type { Duplex } from "node:stream";

import type { Client } from "./client.js";
import { ConnectionFailedError, ProtocolError } from "./errors.js";
import type { Operations } from "./types.js";
import { acceptKey, FrameParser, makeFrame, newSocketKey, opcodes } from "./websocket.js";

const maxInput = 32 << 10;

/**
 * Iterates over the output of the terminal, as bytes, until its command ends; then `result` has the result. Closing the
 * terminal ends the command.
 */
export class Terminal implements AsyncIterableIterator<Uint8Array> {
  /** The result of the command, as RunResult in JSON; undefined before its end. */
  result: Record<string, unknown> | undefined;
  private readonly shown: AsyncGenerator<Uint8Array>;
  private closed = false;
  private left = false;  // closed by this side
  private readonly failPending = new Set<() => void>();

  private constructor(
    private readonly socket: Duplex,
    rest: Uint8Array,
  ) {
    this.shown = this.read(rest);
    socket.on("error", () => undefined);  // reported by read() and write(); an unhandled error would end the process
    socket.once("close", () => this.failPending.forEach((fail) => fail()));
  }

  static async open(client: Client, id: string, query: Operations["openTerminal"]["query"]): Promise<Terminal> {
    const key = newSocketKey();
    const headers = {
      "Upgrade": "websocket",
      "Connection": "Upgrade",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": key,
    };
    const { accept, socket, rest } = await client.upgrade("openTerminal", { path: { id }, query, headers });
    if (accept !== acceptKey(key)) {
      socket.destroy();
      throw new ProtocolError("the server did not open a WebSocket");
    }
    return new Terminal(socket, rest);
  }

  private async *read(rest: Uint8Array): AsyncGenerator<Uint8Array> {
    const parser = new FrameParser();
    try {
      yield* this.take(parser, rest);
      for await (const bytes of this.socket) {
        yield* this.take(parser, bytes as Uint8Array);
        if (this.closed) break;
      }
    } catch (error) {
      if (!this.closed) throw new ConnectionFailedError(`the terminal's connection broke: ${String(error)}`, { cause: error });
    } finally {
      this.end();
    }
    if (!this.left && this.result === undefined)
      throw new ConnectionFailedError("the terminal's connection ended without a result");
  }

  private *take(parser: FrameParser, bytes: Uint8Array): Generator<Uint8Array> {
    for (const { opcode, payload } of parser.feed(bytes)) {
      if (opcode === opcodes.binary) yield payload;
      if (opcode === opcodes.text) this.result = JSON.parse(payload.toString("utf8")) as Record<string, unknown>;
      if (opcode === opcodes.ping) this.send(opcodes.pong, payload).catch(() => undefined);
      if (opcode === opcodes.close) this.end();
    }
  }

  /** Resolves when the kernel has accepted the frame; rejects if the connection broke before that. */
  private send(opcode: number, payload: Uint8Array): Promise<void> {
    if (this.closed) return Promise.reject(new ConnectionFailedError("the terminal is closed"));
    return new Promise((resolve, reject) => {
      const settle = (error?: Error | null) => {
        this.failPending.delete(settle);
        // Node reports no error for a write that was cancelled because the socket closed.
        if (!error && !this.socket.destroyed) resolve();
        else reject(new ConnectionFailedError(`the terminal's connection broke: ${error?.message ?? "closed"}`, { cause: error }));
      };
      this.failPending.add(settle);
      this.socket.write(makeFrame(opcode, payload), settle);
    });
  }

  /** Writes input to the terminal. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = Buffer.from(data);
    for (let begin = 0; begin < bytes.length; begin += maxInput)
      await this.send(opcodes.binary, bytes.subarray(begin, begin + maxInput));
  }

  async resize(rows: number, columns: number): Promise<void> {
    await this.send(opcodes.text, Buffer.from(JSON.stringify({ rows, columns })));
  }

  close(): void {
    this.left = true;
    this.end();
  }

  private end(): void {
    if (this.closed) return;
    this.send(opcodes.close, Buffer.from([0x03, 0xe8])).catch(() => undefined);
    this.closed = true;
    this.socket.end();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    return this.shown.next();
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.close();
    return { done: true, value: undefined };
  }
}
