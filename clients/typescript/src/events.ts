// Server-sent events, and iterators over streams of the server.
import { setTimeout as sleep } from "node:timers/promises";

import type { Command } from "./api.js";
import { ConnectionFailedError, ProtocolError, StreamError, TooManyRequestsError, UnavailableError } from "./errors.js";
import type { Response } from "./transport.js";

const maxEvent = 64 << 20;
/** Milliseconds without an event during which a broken stream is reopened. */
const resumeTimeout = 30_000;
const pauseMs = 50;
const maxPauseMs = 1000;

export interface ServerEvent {
  type: string;
  id: string;
  data: string;
}

/** Splits a stream of bytes into server-sent events. */
export class EventParser {
  private readonly decoder = new TextDecoder();
  private rest = "";

  feed(bytes: Uint8Array): ServerEvent[] {
    const blocks = (this.rest + this.decoder.decode(bytes, { stream: true })).split("\n\n");
    this.rest = blocks.pop() ?? "";
    if (this.rest.length > maxEvent) throw new ProtocolError("an event of the stream is too large");
    return blocks.flatMap((block) => parseEvent(block) ?? []);
  }
}

function parseEvent(block: string): ServerEvent | undefined {
  const event = { type: "message", id: "", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    if (name === "event") event.type = value;
    if (name === "id") event.id = value;
  }
  return data.length > 0 ? { ...event, data: data.join("\n") } : undefined;
}

/** The server-sent events of a response. */
export class EventSource {
  private readonly parser = new EventParser();
  private readonly pieces: AsyncIterator<Uint8Array>;
  private ready: ServerEvent[] = [];
  private broken = false;

  constructor(private readonly response: Response) {
    this.pieces = response.body[Symbol.asyncIterator]();
  }

  /** Undefined at the end of the stream. */
  async next(): Promise<ServerEvent | undefined> {
    for (;;) {
      const event = this.ready.shift();
      if (event !== undefined) return event;
      if (this.broken) throw new ConnectionFailedError("the response was dropped before its end");
      const piece = await this.pieces.next().catch((error: unknown) => {
        this.broken = true;  // after this, the iterator would report an end
        throw error;
      });
      if (piece.done) return undefined;
      this.ready = this.parser.feed(piece.value);
    }
  }

  close(): void {
    this.response.close();
  }
}

function reasonOf(event: ServerEvent): string {
  return String((JSON.parse(event.data) as { reason?: unknown }).reason ?? "");
}

/** Iterates over the items of an endless stream. Leaving the loop closes it. */
export class Events<Item> implements AsyncIterableIterator<Item> {
  private ended = false;

  constructor(
    private readonly source: EventSource,
    private readonly decode: (event: ServerEvent) => Item,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Item>> {
    const event = this.ended ? undefined : await this.source.next().catch((error: unknown) => {
      if (this.ended) return undefined;
      throw error;
    });
    if (this.ended) return { done: true, value: undefined };
    if (event === undefined) throw new ConnectionFailedError("the server ended the stream");
    if (event.type === "error") {
      this.close();
      throw new StreamError(reasonOf(event));
    }
    return { done: false, value: this.decode(event) };
  }

  async return(): Promise<IteratorResult<Item>> {
    this.close();
    return { done: true, value: undefined };
  }

  close(): void {
    this.ended = true;
    this.source.close();
  }
}

/** A piece of a command's output. */
export interface Output {
  stream: "stdout" | "stderr";
  data: Uint8Array;
  text: string;
  /** Offset of its first byte in the stream. */
  offset: number;
}

/** Decodes output of a command, which is base64 if it is not UTF-8. */
export function decodeBytes(text: string, encoding: string | undefined): Buffer {
  return Buffer.from(text, encoding === "base64" ? "base64" : "utf8");
}

/**
 * Iterates over the output of a command, in pieces, until it ends; then `info` has the result. If the connection breaks,
 * it continues at the same offset or throws ConnectionFailedError. Concurrent calls of next() return the pieces in the
 * order of the calls.
 */
export class CommandOutput implements AsyncIterableIterator<Output> {
  /** The state of the command after its end; undefined before. */
  info: Command | undefined;
  private position = "";
  private ended = false;
  private openedAt = performance.now();
  private attempts = 0;  // to reopen it since the last event
  private brokenAt = 0;
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private source: EventSource,
    private readonly reopen: (commandId: string, headers: Record<string, string>) => Promise<EventSource>,
    /** The id of the command; set when the first event arrives. */
    public command_id = "",
    /** Whether the stream waits for the end of the command. */
    private readonly follow = true,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Output>> {
    const result = this.last.then(() => this.read());
    this.last = result.catch(() => undefined);
    return result;
  }

  private async read(): Promise<IteratorResult<Output>> {
    while (!this.ended) {
      const event = await this.nextEvent();
      if (event === undefined) break;
      this.position = event.id || this.position;
      const output = this.take(event);
      if (output !== undefined) return { done: false, value: output };
    }
    this.ended = true;
    return { done: true, value: undefined };
  }

  private take(event: ServerEvent): Output | undefined {
    const value = JSON.parse(event.data) as Record<string, unknown>;
    if (event.type === "started") this.command_id = String(value["command_id"]);
    if (event.type === "exit") {
      this.info = value as unknown as Command;
      this.close();
    }
    if (event.type === "error") {
      this.ended = true;
      throw new StreamError(reasonOf(event));
    }
    if (event.type !== "stdout" && event.type !== "stderr") return undefined;
    const data = decodeBytes(String(value["data"]), String(value["encoding"]));
    return { stream: event.type, data, text: data.toString("utf8"), offset: Number(value["offset"]) };
  }

  /** Undefined after close(), and at the end of a stream that does not wait for the command. */
  private async nextEvent(): Promise<ServerEvent | undefined> {
    for (;;) {
      let broken: Error = new ConnectionFailedError("the server ended the stream before the command");
      try {
        const event = await this.source.next();
        if (event !== undefined) {
          this.attempts = 0;
          return event;
        }
        if (!this.follow) return undefined;
      } catch (error) {
        if (this.ended) return undefined;  // close() ended the read
        if (!(error instanceof ConnectionFailedError)) throw error;
        broken = error;
      }
      if (this.ended) return undefined;
      await this.resume(broken);
    }
  }

  /** Reopens the stream after the last event. */
  private async resume(broken: Error): Promise<void> {
    const id = this.command_id;
    if (!id)
      throw new ConnectionFailedError("the stream broke before the command's id arrived; the command may run", { cause: broken });
    if (performance.now() - this.openedAt > resumeTimeout) this.attempts = 0;  // the broken connection had worked
    if (this.attempts === 0) this.brokenAt = performance.now();
    const headers: Record<string, string> = this.position ? { "Last-Event-ID": this.position } : {};
    while (!this.ended) {
      if (this.attempts > 0 && performance.now() - this.brokenAt > resumeTimeout)
        throw new ConnectionFailedError(`the stream of ${id} broke and cannot be continued: ${broken.message}`, { cause: broken });
      if (this.attempts > 0) await sleep(Math.min(this.attempts * pauseMs, maxPauseMs));
      this.attempts += 1;
      try {
        this.source = await this.reopen(id, headers);
      } catch (error) {
        // The server is starting, or still has the old connection.
        if (![ConnectionFailedError, TooManyRequestsError, UnavailableError].some((kind) => error instanceof kind)) throw error;
        broken = error as Error;
        continue;
      }
      this.openedAt = performance.now();
      if (this.ended) this.source.close();  // closed meanwhile
      return;
    }
  }

  async return(): Promise<IteratorResult<Output>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** Closes the stream. The command keeps running. */
  close(): void {
    this.ended = true;
    this.source.close();
  }

  /** Reads to the end and returns the state of the command. */
  async wait(): Promise<Command> {
    for await (const piece of this) void piece;
    if (this.info === undefined) throw new StreamError("the stream ended before the command");
    return this.info;
  }
}
