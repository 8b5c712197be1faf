// HTTP requests: with fetch for TCP, with node:http for unix sockets, which fetch does not support.
import * as http from "node:http";
import * as https from "node:https";
import { Readable } from "node:stream";
import type { Duplex } from "node:stream";
import { ReadableStream } from "node:stream/web";

import { describeEndpoint } from "./endpoint.js";
import type { Endpoint } from "./endpoint.js";
import { CaissonError, ConnectionFailedError, ProtocolError, RequestTimeoutError } from "./errors.js";

export type Body = string | Uint8Array | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface Request {
  method: string;
  /** Path and query. */
  target: string;
  headers: Record<string, string>;
  body?: Body | undefined;
  /** Seconds without a byte from the server after which the request fails. */
  timeout: number;
}

export interface Response {
  status: number;
  /** The pieces of the body. Leaving the loop discards the rest and closes the connection. */
  body: AsyncIterable<Uint8Array>;
  /** The whole body. Cannot be combined with `body`. */
  readAll(): Promise<Buffer>;
  close(): void;
}

/** Raised if nothing listens at the endpoint. */
export class NoServerError extends ConnectionFailedError {}

/** fetch waits at most 300 seconds for the head of a response; a longer request needs node:http. */
const longestFetch = 290;

export class Transport {
  private readonly agent: http.Agent;
  private readonly secure: boolean;
  private readonly address: http.RequestOptions;

  constructor(readonly endpoint: Endpoint) {
    this.secure = endpoint.origin.startsWith("https:");
    const { hostname, port } = new URL(endpoint.origin);
    this.address = endpoint.socket ? { socketPath: endpoint.socket, host: hostname } : { host: hostname.replace(/^\[|\]$/g, ""), port };
    this.agent = new (this.secure ? https : http).Agent({ keepAlive: true, maxFreeSockets: 16 });
  }

  close(): void {
    this.agent.destroy();
  }

  async send(request: Request): Promise<Response> {
    const idle = new IdleTimer(request.timeout);
    const byFetch = !this.endpoint.socket && request.timeout < longestFetch;
    try {
      return byFetch ? await this.sendByFetch(request, idle) : await this.sendByNode(request, idle);
    } catch (error) {
      idle.stop();
      throw this.translate(error, idle, request);
    }
  }

  private translate(error: unknown, idle: IdleTimer, request: Request): Error {
    if (error instanceof CaissonError) return error;
    if (idle.expired) return new RequestTimeoutError(`the server sent nothing for ${request.timeout} s`);
    const where = describeEndpoint(this.endpoint);
    if (codeOf(error).startsWith("HPE_")) return new ProtocolError(`the response of ${where} is not HTTP/1.1`);
    if (["ENOENT", "ECONNREFUSED"].includes(codeOf(error))) return new NoServerError(`no server at ${where}: ${codeOf(error)}`);
    return new ConnectionFailedError(`the connection to ${where} broke: ${codeOf(error) || String(error)}`);
  }

  private async sendByFetch(request: Request, idle: IdleTimer): Promise<Response> {
    const { method, headers, body } = request;
    const plain = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const controller = new AbortController();
    idle.onExpiry(() => controller.abort());
    const init: RequestInit & { duplex?: "half" } = { method, headers, signal: controller.signal, redirect: "error" };
    if (body !== undefined) init.body = plain ? (body as string) : (webStream(body) as unknown as string);
    if (!plain) init.duplex = "half";
    const response = await fetch(this.endpoint.origin + request.target, init);
    // values() locks the body. Node cancels an unlocked body when its Response is garbage collected, which would look like
    // the end of the body.
    const pieces = response.body === null ? [] : (response.body as unknown as ReadableStream<Uint8Array>).values();
    return this.respond(response.status, pieces, idle, request, () => controller.abort());
  }

  private sendByNode(request: Request, idle: IdleTimer): Promise<Response> {
    return new Promise((resolve, reject) => {
      const sent = this.openRequest(request, idle);
      sent.once("response", (response) => {
        resolve(this.respondByNode(response, idle, request));
      });
      sent.once("error", reject);
      writeBody(sent, request.body);
    });
  }

  private openRequest(request: Request, idle: IdleTimer): http.ClientRequest {
    const headers = { ...request.headers };
    if (typeof request.body === "string" || request.body instanceof Uint8Array)
      headers["Content-Length"] = String(Buffer.byteLength(request.body));
    const options: http.RequestOptions = { ...this.address, method: request.method, path: request.target, headers, agent: this.agent };
    const sent = (this.secure ? https : http).request(options);
    idle.onExpiry(() => sent.destroy());
    return sent;
  }

  private respond(status: number, pieces: AsyncIterable<Uint8Array> | Uint8Array[], idle: IdleTimer, request: Request,
                  abort: () => void): Response {
    const translate = (error: unknown) => this.translate(error, idle, request);
    async function* read(): AsyncGenerator<Uint8Array> {
      try {
        for await (const piece of pieces) {
          idle.restart();
          yield piece;
        }
      } catch (error) {
        throw translate(error);
      } finally {
        idle.stop();
      }
    }
    const close = () => {
      idle.stop();
      abort();
    };
    return { status, body: read(), readAll: () => concatenate(read()), close };
  }

  /** Like respond(), but readAll() uses events, which takes a third of the time of a loop over the stream. */
  private respondByNode(response: http.IncomingMessage, idle: IdleTimer, request: Request): Response {
    const answer = this.respond(response.statusCode ?? 0, response, idle, request, () => response.destroy());
    answer.readAll = () =>
      new Promise((resolve, reject) => {
        const pieces: Buffer[] = [];
        response.on("data", (piece: Buffer) => {
          idle.restart();
          pieces.push(piece);
        });
        response.once("end", () => resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)));
        response.once("error", (error) => reject(this.translate(error, idle, request)));
        response.once("close", () => {
          idle.stop();
          // Has no effect if the body arrived or an error was reported.
          reject(this.translate(new Error("the body ended early"), idle, request));
        });
      });
    return answer;
  }

  /** Performs a WebSocket handshake. Returns the socket and the bytes after the response, or the error response. */
  upgrade(request: Request): Promise<{ accept: string; socket: Duplex; rest: Uint8Array } | Response> {
    const idle = new IdleTimer(request.timeout);
    return new Promise((resolve, reject) => {
      const sent = this.openRequest(request, idle);
      sent.once("upgrade", (response, socket, rest) => {
        idle.stop();
        resolve({ accept: String(response.headers["sec-websocket-accept"] ?? ""), socket, rest });
      });
      sent.once("response", (response) => {
        resolve(this.respondByNode(response, idle, request));
      });
      sent.once("error", (error) => {
        idle.stop();
        reject(this.translate(error, idle, request));
      });
      sent.end();
    });
  }
}

/** Whether a failed request can be repeated: it is idempotent. */
export function isRepeatable({ method, headers, body }: Request): boolean {
  if (body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) return false;
  return method === "GET" || method === "PUT" || "Idempotency-Key" in headers;
}

/** Not Readable.toWeb(): it throws outside of any promise if the server rejects the body (Node 20). */
function webStream(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): ReadableStream<Uint8Array> {
  const pieces = Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = await pieces.next();
      if (piece.done) controller.close();
      else controller.enqueue(piece.value);
    },
    async cancel() {
      await pieces.return?.();
    },
  });
}

function writeBody(sent: http.ClientRequest, body: Body | undefined): void {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    sent.end(body);
    return;
  }
  const source = Readable.from(body);
  source.once("error", (error) => sent.destroy(error));
  // The server may reject a body and respond before its end.
  sent.once("response", () => source.unpipe(sent));
  source.pipe(sent);
}

function codeOf(error: unknown): string {
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    const code: unknown = (one as NodeJS.ErrnoException).code;
    if (typeof code === "string") return code;
    if (one instanceof AggregateError && one.errors.length > 0) return codeOf(one.errors[0]);
  }
  return "";
}

/** Aborts a request if nothing arrives for so many seconds. */
class IdleTimer {
  expired = false;
  private readonly timer: NodeJS.Timeout;
  private end: () => void = () => {};

  constructor(seconds: number) {
    const milliseconds = Math.min(seconds * 1000, 2 ** 31 - 1);
    this.timer = setTimeout(() => {
      this.expired = true;
      this.end();
    }, milliseconds);
  }

  onExpiry(end: () => void): void {
    this.end = end;
  }

  restart(): void {
    this.timer.refresh();
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

async function concatenate(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}
