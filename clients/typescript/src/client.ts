// A connection to a caisson server, and the operations that do not belong to one sandbox.
import { setTimeout as sleep } from "node:timers/promises";

import { routes } from "./api.js";
import type { Approval, AuditRecord, Caller, Event, Operations, Policy, PolicyCheck, SandboxList } from "./types.js";
import { localEndpoint, parseUrl } from "./endpoint.js";
import { CaissonError, ConnectionFailedError, errorOf, ProtocolError } from "./errors.js";
import { Events, EventSource } from "./events.js";
import { findProgram, startServer } from "./local.js";
import { percentEncode } from "./names.js";
import { isRepeatable, NoServerError, Transport } from "./transport.js";
import type { Body, Request, Response } from "./transport.js";

const maxAttempts = 4;
const pauseMs = 50;

export interface ClientOptions {
  /**
   * `unix:/PATH`, `http://HOST:PORT` or `https://HOST:PORT`. Default: CAISSON_URL, else the user's own server on its unix
   * socket, which is started if it does not run.
   */
  url?: string | undefined;
  /** Default: CAISSON_TOKEN. The owner needs none on the unix socket. */
  token?: string | undefined;
  /** Seconds without a byte from the server after which a request fails; 60 by default. */
  request_timeout?: number | undefined;
  /** Whether to start the user's own server; true by default. */
  start?: boolean | undefined;
  start_timeout?: number | undefined;
  /** The program to start. Default: CAISSON_PROGRAM, else `caisson` in PATH, else that of the npm package `caisson`. */
  program?: string | undefined;
  /** Called with method, path and status of each response, for logs. */
  on_response?: ((method: string, path: string, status: number) => void) | undefined;
}

export type OperationId = keyof Operations;

/** The input of an operation: values of its path, its query and its body. */
export type Input<Id extends OperationId> = Omit<Operations[Id], "result"> & {
  raw?: Body | undefined;
  headers?: Record<string, string> | undefined;
  timeout?: number | undefined;
};

interface AnyInput {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: object;
  raw?: Body | undefined;
  headers?: Record<string, string> | undefined;
  timeout?: number | undefined;
}

function queryText(query: Record<string, unknown> | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return "?" + given.map(([name, value]) => `${name}=${percentEncode(String(value))}`).join("&");
}

export class Client {
  readonly request_timeout: number;
  readonly approvals = new Approvals(this);
  readonly policies = new Policies(this);
  readonly audit = new Audit(this);
  private readonly transport: Transport;
  private readonly token: string | undefined;
  private readonly starts: boolean;

  constructor(private readonly options: ClientOptions = {}) {
    const url = options.url ?? (process.env["CAISSON_URL"] || undefined);
    const endpoint = url === undefined ? localEndpoint() : parseUrl(url);
    this.transport = new Transport(endpoint);
    this.request_timeout = options.request_timeout ?? 60;
    this.token = options.token ?? (process.env["CAISSON_TOKEN"] || undefined);
    this.starts = (options.start ?? true) && url === undefined;
    if (this.token !== undefined && !endpoint.isPrivate)
      throw new CaissonError(`refused to send a token unencrypted to ${endpoint.origin}: use https`);
  }

  /** Closes idle connections. The server and its sandboxes keep running. */
  close(): void {
    this.transport.close();
  }

  private prepare(id: OperationId, input: AnyInput): { path: string; request: Request } {
    const [method, pattern] = routes[id];
    const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(input.path?.[name] ?? ""));
    const headers: Record<string, string> = { "User-Agent": "caisson-client-typescript/0.2", ...input.headers };
    if (this.token !== undefined) headers["Authorization"] = `Bearer ${this.token}`;
    if (input.body !== undefined) headers["Content-Type"] = "application/json";
    if (input.raw !== undefined) headers["Content-Type"] = "application/octet-stream";
    const body = input.body === undefined ? input.raw : JSON.stringify(input.body);
    const timeout = input.timeout ?? this.request_timeout;
    return { path, request: { method, target: path + queryText(input.query), headers, body, timeout } };
  }

  /** Starts the user's own server if it does not run. Repeats idempotent requests: a server may exit at any time. */
  private async persist<Result>(repeatable: boolean, send: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; ++attempt) {
      try {
        return await send();
      } catch (error) {
        const missing = error instanceof NoServerError;
        const again = missing ? this.starts : error instanceof ConnectionFailedError && repeatable;
        if (!again || attempt >= maxAttempts) throw error;
        if (missing) await this.start();
        else await sleep(attempt * pauseMs);
      }
    }
  }

  private start(): Promise<void> {
    const program = this.options.program ?? (process.env["CAISSON_PROGRAM"] || findProgram());
    return startServer(program, this.transport.endpoint.socket, this.options.start_timeout ?? 30);
  }

  private async check(path: string, method: string, response: Response): Promise<Response> {
    this.options.on_response?.(method, path, response.status);
    if (response.status < 300) return response;
    throw errorOf(response.status, (await response.readAll()).toString("utf8"));
  }

  /** Sends one request. Throws ApiError unless the status is 2xx. The response body is not read yet. */
  async send<Id extends OperationId>(id: Id, input: Input<Id>): Promise<Response> {
    const { path, request } = this.prepare(id, input as AnyInput);
    return this.check(path, request.method, await this.persist(isRepeatable(request), () => this.transport.send(request)));
  }

  /** Sends one request and returns the JSON response; undefined if it has no content. */
  async request<Id extends OperationId>(id: Id, input: Input<Id>): Promise<Operations[Id]["result"]> {
    const text = (await (await this.send(id, input)).readAll()).toString("utf8");
    if (text === "") return undefined as Operations[Id]["result"];
    try {
      return JSON.parse(text) as Operations[Id]["result"];
    } catch {
      throw new ProtocolError("the response is not JSON");
    }
  }

  async open_events<Id extends OperationId>(id: Id, input: Input<Id>): Promise<EventSource> {
    const headers = { Accept: "text/event-stream", ...input.headers };
    return new EventSource(await this.send(id, { ...input, headers }));
  }

  /** Performs the WebSocket handshake of an operation. */
  async upgrade<Id extends OperationId>(id: Id, input: Input<Id>) {
    const { path, request } = this.prepare(id, input as AnyInput);
    const answer = await this.persist(false, () => this.transport.upgrade(request));
    if ("socket" in answer) {
      this.options.on_response?.(request.method, path, 101);
      return answer;
    }
    await this.check(path, request.method, answer);
    throw new ProtocolError("the server did not open a WebSocket");
  }

  /** The caller's sandboxes, oldest first. label: NAME or NAME=VALUE. */
  sandboxes(query: Operations["listSandboxes"]["query"] = {}): Promise<SandboxList> {
    return this.request("listSandboxes", { query });
  }

  /** Lifecycle events from now on, or after the event of this id. */
  async events(query: Operations["streamEvents"]["query"] = {}): Promise<Events<Event>> {
    return new Events(await this.open_events("streamEvents", { query }), (event) => JSON.parse(event.data) as Event);
  }

  whoami(): Promise<Caller> {
    return this.request("whoAmI", {});
  }

  /** Statistics of the server. Needs the scope admin. */
  stats(): Promise<Operations["getStats"]["result"]> {
    return this.request("getStats", {});
  }

  /** Templates that sandboxes can be created from, and how many are ready in their pools. */
  async templates(): Promise<Operations["listTemplates"]["result"]["templates"]> {
    return (await this.request("listTemplates", {})).templates;
  }

  /** Images that sandboxes can start from. */
  async images(): Promise<Operations["listImages"]["result"]["images"]> {
    return (await this.request("listImages", {})).images;
  }

  /** Whether the server runs. */
  async health(): Promise<boolean> {
    return (await this.request("getHealth", {})).status === "ok";
  }

  /** Checks whether the server can create sandboxes; if not, UnavailableError has the reason. */
  async ready(): Promise<boolean> {
    return (await this.request("getReadiness", {})).status === "ready";
  }

  /** Metrics in the Prometheus format. Needs the scope admin. */
  async metrics(): Promise<string> {
    return (await (await this.send("getMetrics", {})).readAll()).toString("utf8");
  }

  /** The OpenAPI document of the server. */
  openapi(): Promise<Record<string, unknown>> {
    return this.request("getOpenApi", {});
  }
}

/** Approval requests to the owner. */
class Approvals {
  constructor(private readonly client: Client) {}

  /** All requests if the caller is the owner, otherwise only the caller's. */
  async list(): Promise<Approval[]> {
    return (await this.client.request("listApprovals", {})).approvals;
  }

  get(id: string): Promise<Approval> {
    return this.client.request("getApproval", { path: { approval: id } });
  }

  /** Only for the owner, on the unix socket. seconds: how long the decision is valid. */
  answer(id: string, decision: "allow" | "deny", options: { seconds?: number | undefined } = {}): Promise<Approval> {
    return this.client.request("answerApproval", { path: { approval: id }, body: { decision, ...options } });
  }
}

class Policies {
  constructor(private readonly client: Client) {}

  /** The names of the built-in profiles. */
  async list(): Promise<string[]> {
    return (await this.client.request("listPolicies", {})).profiles.map((one) => String(one["name"]));
  }

  /** A profile as a document, with an explanation. */
  get(profile: string): Promise<Policy> {
    return this.client.request("getPolicy", { path: { profile } });
  }

  /** The errors of a policy document, or its explanation. */
  check(policy: Record<string, unknown>): Promise<PolicyCheck> {
    return this.client.request("checkPolicy", { body: { policy } });
  }
}

class Audit {
  constructor(private readonly client: Client) {}

  /** The newest records about the caller's sandboxes, oldest first. */
  async query(query: Operations["queryAudit"]["query"] = {}): Promise<AuditRecord[]> {
    return (await this.client.request("queryAudit", { query })).records as unknown as AuditRecord[];
  }

  /** New records. */
  async stream(): Promise<Events<AuditRecord>> {
    return new Events(await this.client.open_events("streamAudit", {}), (event) => JSON.parse(event.data) as AuditRecord);
  }
}
