// properties.mjs URL TOKEN SANDBOX SECONDS [SEED]: sends requests generated from the OpenAPI document, valid and invalid,
// to every route. None may cause a 5xx other than the documented 501, 503 and 507. A success must have the documented
// members.
import http from "node:http";

import fc from "fast-check";

const [url, token, sandbox, seconds, seed] = process.argv.slice(2);
const allowed = new Set([501, 503, 507]);
const counts = new Map();

function send(method, path, { headers = {}, body, streams = false } = {}) {
  return new Promise((resolve, reject) => {
    const all = { Authorization: `Bearer ${token}`, ...headers };
    const request = http.request(new URL(url), { method, path, headers: all, timeout: 30_000 });
    const done = (response, text) => resolve({ status: response.statusCode, headers: response.headers, text });
    request.on("upgrade", (response, socket) => {
      socket.destroy();
      done(response, "");
    });
    request.on("response", (response) => {
      if (streams && response.statusCode === 200) {
        response.destroy();
        return done(response, "");
      }
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("end", () => done(response, Buffer.concat(pieces).toString("utf8")));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 30 s")));
    request.on("error", (error) => {
      if (error.rawPacket) error.message += `: ${error.rawPacket.toString("latin1").slice(0, 800)}`;
      reject(error);
    });
    request.end(body);
  });
}

const document = JSON.parse((await send("GET", "/v1/openapi.json")).text);
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })));
const resolve = (schema) => (schema?.$ref ? document.components.schemas[schema.$ref.split("/").at(-1)] : schema);

const texts = fc.oneof(
  fc.string({ maxLength: 40 }), fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("", ".", "..", "../../etc/passwd", "/", "/workspace", "/workspace/a", "a", "a/b", "\u0000", "x".repeat(5000),
                  "true", "echo hi", "exit 3", "cat", "TERM", "9", "128M", "1G", "-1M", "dev", "bash", "nonsense", "debian:12",
                  "644", "99999", "%2e%2e", "a\r\nX: y", "é\u{1F600}", sandbox, `${sandbox}:none`, "example.org", "*.example.org"));
const anything = fc.oneof(texts, fc.integer(), fc.double(), fc.boolean(), fc.constant(null), fc.array(texts, { maxLength: 4 }),
                          fc.dictionary(texts, fc.oneof(texts, fc.integer()), { maxKeys: 4 }), fc.jsonValue({ maxDepth: 3 }));

/** Generates values that match a schema of a request. */
function valid(schema, name) {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  // The sandbox must not expire during the test.
  const least = name === "sandbox_timeout" ? 600 : schema.minimum ?? 0;
  const most = schema.maximum ?? 1e6;
  // Bounded, so that commands and responses do not wait long.
  const short = { command_timeout: 2, request_timeout: 1 }[name];
  switch (schema.type) {
    case "integer": return fc.integer({ min: Math.ceil(least), max: Math.floor(Math.min(most, short ?? most)) });
    case "number": return fc.double({ min: least, max: Math.min(most, short ?? most), noNaN: true });
    case "boolean": return fc.boolean();
    case "array": return fc.array(texts, { maxLength: 5 });
    case "object": return name === "policy" ? policies : fc.dictionary(texts, texts, { maxKeys: 5 });
    default: return texts;
  }
}

const policies = fc.oneof(
  fc.constant({ extends: "dev" }), fc.jsonValue({ maxDepth: 4 }),
  fc.record({ extends: texts, resources: fc.record({ memory: anything, cpus: anything }, { requiredKeys: [] }),
              network: fc.record({ mode: anything, allowed_hosts: anything }, { requiredKeys: [] }),
              filesystem: fc.record({ tmpfs: anything, denied: anything, root: anything }, { requiredKeys: [] }),
              environment: fc.record({ set: anything }, { requiredKeys: [] }) }, { requiredKeys: [] }));

const mostly = (arbitrary) => fc.oneof({ arbitrary, weight: 5 }, { arbitrary: anything, weight: 1 });

function bodyOf(operation) {
  const content = operation.requestBody?.content;
  if (!content) return fc.constant(undefined);
  const [type, { schema }] = Object.entries(content)[0];
  if (type !== "application/json") return fc.uint8Array({ maxLength: 3000 }).map((bytes) => ({ type, data: Buffer.from(bytes) }));
  const members = Object.fromEntries(Object.entries(schema.properties).map(([name, one]) => [name, mostly(valid(one, name))]));
  const requiredKeys = schema.required ?? [];
  const object = fc.oneof({ arbitrary: fc.record(members, { requiredKeys }), weight: 6 },
                          { arbitrary: fc.record({ ...members, unknown: anything }, { requiredKeys: [] }), weight: 1 });
  const json = fc.oneof({ arbitrary: object, weight: 12 }, { arbitrary: anything, weight: 1 }).map((value) => JSON.stringify(value) ?? "");
  return fc.oneof({ arbitrary: json, weight: 12 }, { arbitrary: texts, weight: 1 }).map((data) => ({ type, data }));
}

const ids = { id: [sandbox], command: ["c1", "c2", "c99"], port: ["8000", "1", "0", "65536"], profile: ["dev", "bash"] };

/** Generates one request for an operation. */
function requestOf(operation) {
  const parameters = operation.parameters ?? [];
  const path = Object.fromEntries(parameters.filter((one) => one.in === "path").map((one) => [one.name, fc.oneof(
    { arbitrary: fc.constantFrom(...(ids[one.name] ?? ["ap-x"])), weight: 6 }, { arbitrary: texts, weight: 1 })]));
  const queries = parameters.filter((one) => one.in === "query");
  const query = fc.record(Object.fromEntries(queries.map((one) => [one.name, mostly(valid(one.schema, one.name))])),
                          { requiredKeys: queries.filter((one) => one.required).map((one) => one.name) });
  return fc.record({
    operation: fc.constant(operation.operationId),
    path: fc.record(path),
    query: fc.oneof({ arbitrary: query, weight: 8 }, { arbitrary: fc.dictionary(texts, texts, { maxKeys: 3 }), weight: 1 }),
    body: bodyOf(operation),
    range: fc.oneof({ arbitrary: fc.constant(undefined), weight: 6 },
                    { arbitrary: fc.constantFrom("bytes=0-1", "bytes=-1", "bytes=9-", "bytes=5-1", "x", "bytes=0-99999999999999999999"), weight: 1 }),
    key: fc.oneof({ arbitrary: fc.constant(undefined), weight: 6 }, { arbitrary: fc.constantFrom("k1", "k2", "x".repeat(300)), weight: 1 }),
    method: fc.oneof({ arbitrary: fc.constant(operation.method), weight: 20 },
                     { arbitrary: fc.constantFrom("GET", "HEAD", "PUT", "PATCH", "OPTIONS", "TRACE"), weight: 1 }),
    upgrade: operation.operationId === "openTerminal" ? fc.boolean() : fc.constant(false),
  });
}

const byId = new Map(operations.map((one) => [one.operationId, one]));

function textOf(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

async function check(made) {
  const operation = byId.get(made.operation);
  // Do not destroy the sandbox that all requests use: the others would get 404.
  if (made.operation === "destroySandbox" && made.path.id === sandbox) return;
  const route = operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(made.path[name]).toWellFormed()));
  const query = new URLSearchParams(Object.entries(made.query).map(([name, value]) => [name, textOf(value)])).toString();
  const headers = {};
  // node:http sends no body with HEAD, and none with a length with some other methods.
  const body = made.method === "HEAD" ? undefined : made.body?.data;
  if (body !== undefined) Object.assign(headers, { "Content-Type": made.body.type, "Content-Length": Buffer.byteLength(body) });
  if (made.range) headers.Range = made.range;
  if (made.key) headers["Idempotency-Key"] = made.key;
  if (made.upgrade) Object.assign(headers, { "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                                             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" });
  const streams = Object.values(operation.responses).some((one) => one.content?.["text/event-stream"]) ||
                  String(made.body?.data ?? "").includes('"stream"');
  // An archive whose time limit kills tar is aborted, so that it does not look complete.
  const may_break_off = made.operation === "readArchive" && Number(textOf(made.query.command_timeout)) < 60;
  const reply = await send(made.method, route + (query ? `?${query}` : ""), { headers, body, streams }).catch((error) => {
    if (!may_break_off || error.message !== "aborted") throw error;
  });
  if (!reply) return;
  const about = `${made.method} ${route}?${query}: ${reply.status} ${reply.text.slice(0, 500)}`;
  const code = reply.status >= 500 ? ` ${reply.text.slice(0, 200)}` : "";
  const key = `${made.operation} ${reply.status}${code}`;
  counts.set(key, (counts.get(key) ?? 0) + 1);
  if (reply.status >= 500 && !allowed.has(reply.status)) throw new Error(about);
  if (reply.status >= 400 && made.method !== "HEAD") {
    const problem = JSON.parse(reply.text);
    for (const member of ["type", "title", "status", "code", "reason"])
      if (!(member in problem)) throw new Error(`no ${member} in the problem: ${about}`);
  }
  if (made.method !== operation.method || streams || reply.status >= 300 || reply.status === 101 || !reply.text) return;
  const documented = operation.responses[reply.status];
  if (!documented) throw new Error(`an undocumented status: ${about}`);
  const schema = resolve(documented.content?.["application/json"]?.schema);
  for (const member of schema?.required ?? [])
    if (!(member in JSON.parse(reply.text))) throw new Error(`no ${member} in the response: ${about}`);
  if (reply.status === 201 && made.operation !== "publishPort" && reply.headers.location) {
    const made_id = reply.headers.location.split("/")[3];
    if (made_id !== sandbox) await send("DELETE", `/v1/sandboxes/${made_id}`);
  }
}

const report = await fc.check(
  fc.asyncProperty(fc.oneof(...operations.map(requestOf)), check),
  { numRuns: 1_000_000, interruptAfterTimeLimit: Number(seconds) * 1000, seed: seed ? Number(seed) : undefined, endOnFailure: true });
const seen = new Set([...counts.keys()].map((key) => key.split(" ")[0]));
const total = [...counts.values()].reduce((a, b) => a + b, 0);
const by = new Map();
for (const [key, count] of counts) by.set(key.split(" ")[1], (by.get(key.split(" ")[1]) ?? 0) + count);
console.log(`${total} requests, ${seen.size} of ${operations.length} operations, seed ${report.seed}; by status: ` +
            [...by].sort().map(([status, count]) => `${status}: ${count}`).join(", "));
for (const [key, count] of counts) if (/^\w+ 5/.test(key)) console.log(`  ${key}: ${count}`);
if (report.failed) {
  console.log(`failed with seed ${report.seed}: ${report.errorInstance ?? report.error}`);
  console.log(JSON.stringify(report.counterexample)?.slice(0, 2000));
  process.exit(1);
}
const missing = operations.map((one) => one.operationId).filter((name) => !seen.has(name) && name !== "destroySandbox");
if (missing.length > 0) {
  console.log(`no request reached: ${missing.join(", ")}`);
  process.exit(1);
}
