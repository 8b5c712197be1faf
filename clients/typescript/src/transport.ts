// HTTP requests: over fetch for TCP, over node:http for unix sockets, which fetch cannot reach.
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
  /** The pieces of the body; leaving the loop drops the rest and the connection. */
  body: AsyncIterable<Uint8Array>;
  close(): void;
}

/** Raised if nothing listens at the endpoint. */
export class NoServerError extends ConnectionFailedError {}

/** fetch waits at most 300 seconds for the head of a response; a longer request needs node:http. */
const longestFetch = 290;

export class Transport {
  private readonly agent: http.Agent;
  private readonly secure: boolean;

  constructor(readonly endpoint: Endpoint) {
    this.secure = endpoint.origin.startsWith("https:");
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
    const init: RequestInit & { duplex?: "half" } = { method, headers, signal: idle.controller.signal, redirect: "error" };
    if (body !== undefined) init.body = plain ? (body as string) : (webStream(body) as unknown as string);
    if (!plain) init.duplex = "half";
    const response = await fetch(this.endpoint.origin + request.target, init);
    const pieces = response.body === null ? [] : (response.body as unknown as AsyncIterable<Uint8Array>);
    return this.respond(response.status, pieces, idle, request, () => idle.controller.abort());
  }

  private sendByNode(request: Request, idle: IdleTimer): Promise<Response> {
    return new Promise((resolve, reject) => {
      const sent = this.openRequest(request, idle);
      sent.once("response", (response) => {
        resolve(this.respond(response.statusCode ?? 0, response, idle, request, () => response.destroy()));
      });
      sent.once("error", reject);
      writeBody(sent, request.body);
    });
  }

  private openRequest(request: Request, idle: IdleTimer): http.ClientRequest {
    const headers = { ...request.headers };
    if (typeof request.body === "string" || request.body instanceof Uint8Array)
      headers["Content-Length"] = String(Buffer.byteLength(request.body));
    const options: http.RequestOptions = { method: request.method, headers, agent: this.agent, signal: idle.controller.signal };
    if (this.endpoint.socket) options.socketPath = this.endpoint.socket;
    return (this.secure ? https : http).request(this.endpoint.origin + request.target, options);
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
    return { status, body: read(), close };
  }

  /** A WebSocket handshake. Returns the socket and the bytes that arrived after the response, or the refusal. */
  upgrade(request: Request): Promise<{ accept: string; socket: Duplex; rest: Uint8Array } | Response> {
    const idle = new IdleTimer(request.timeout);
    return new Promise((resolve, reject) => {
      const sent = this.openRequest(request, idle);
      sent.once("upgrade", (response, socket, rest) => {
        idle.stop();
        resolve({ accept: String(response.headers["sec-websocket-accept"] ?? ""), socket, rest });
      });
      sent.once("response", (response) => {
        resolve(this.respond(response.statusCode ?? 0, response, idle, request, () => response.destroy()));
      });
      sent.once("error", (error) => {
        idle.stop();
        reject(this.translate(error, idle, request));
      });
      sent.end();
    });
  }
}

/** Whether a request that broke off can be sent again: it changes nothing, or nothing more. */
export function isRepeatable({ method, headers, body }: Request): boolean {
  if (body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) return false;
  return method === "GET" || method === "PUT" || "Idempotency-Key" in headers;
}

/** Not Readable.toWeb(), which throws outside of any promise if the server refuses the body (Node 20). */
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
  // The server may refuse a body and respond before its end.
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

/** Aborts a request during which nothing arrives for so many seconds. */
class IdleTimer {
  readonly controller = new AbortController();
  expired = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly seconds: number) {
    this.restart();
  }

  restart(): void {
    if (this.timer !== undefined) {
      this.timer.refresh();
      return;
    }
    const milliseconds = Math.min(this.seconds * 1000, 2 ** 31 - 1);
    this.timer = setTimeout(() => {
      this.expired = true;
      this.controller.abort();
    }, milliseconds);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

/** The whole body as bytes. */
export async function readAll(response: Response): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of response.body) pieces.push(piece);
  return Buffer.concat(pieces);
}
