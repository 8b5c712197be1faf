// Calls every route with the TypeScript client.
//
//   typescript_scenario.mjs CLIENT URL TOKEN WORKSPACE SCRATCH      CAISSON_HOME: the home of the owner's server
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [clientPath, url, token, workspace, scratch] = process.argv.slice(2);
const {
  ApprovalRequiredError, Client, ConflictError, ForbiddenError, InvalidRequestError, NotFoundError, Sandbox,
  UnauthorizedError, UnavailableError,
} = await import(pathToFileURL(clientPath));

const requests = [];
const on_response = (...request) => requests.push(request);

async function commands(sandbox) {
  const result = await sandbox.run("echo out; echo err >&2; exit 3");
  assert.deepEqual([result.stdout, result.stderr, result.exit_code, result.ok], ["out\n", "err\n", 3, false]);
  assert.equal((await sandbox.run(["printf", "%s", "a b"])).stdout, "a b");
  assert.equal((await sandbox.run("cat; echo $X", { stdin: "in ", environment: { X: "1" } })).stdout, "in 1\n");
  const bytes = Buffer.from([0xff, 0]);
  assert.deepEqual(Buffer.from((await sandbox.run("cat", { stdin: bytes })).stdout_raw), bytes);
  const slow = await sandbox.run("sleep 60", { command_timeout: 0.3 });
  assert.ok(slow.outcome === "limit" && slow.limit !== null && !slow.ok);
  const once = [];
  for (const _ of [1, 2]) once.push(await sandbox.run("echo x >> once; wc -l < once", { idempotency_key: "run-1" }));
  assert.deepEqual(once.map((one) => one.stdout), ["1\n", "1\n"]);

  let text = "";
  const stream = await sandbox.stream("for i in 1 2 3; do echo $i; done; exit 4");
  for await (const piece of stream) text += piece.text;
  assert.equal(text, "1\n2\n3\n");
  assert.equal(stream.info.exit_code, 4);

  const background = await sandbox.start("read line; echo got $line; cat; echo end", { keep_stdin: true });
  assert.ok((await background.info()).running);
  await background.write("one\n");
  for await (const piece of await background.output()) {
    assert.deepEqual([piece.text, piece.offset], ["got one\n", 0]);
    break;
  }
  await background.write(Buffer.from("two\n"), { close: true });
  let rest = "";
  const again = await sandbox.command(background.id).output({ stdout_offset: "got one\n".length });
  for await (const piece of again) rest += piece.text;
  assert.equal(rest, "two\nend\n");
  assert.equal((await background.wait()).exit_code, 0);

  let sleeper = await sandbox.start("sleep 100");
  await sleeper.signal("TERM");
  assert.equal((await sleeper.wait()).signal, 15);
  sleeper = await sandbox.start("sleep 100");
  await sleeper.kill();
  assert.ok(!(await sleeper.wait()).running);
  const ids = (await sandbox.commands()).map((one) => one.id);
  assert.ok(ids.includes(background.id) && ids.includes(sleeper.id));

  // A resize reaches the program with a delay: the client's terminal is not the terminal of the sandbox.
  const line = "stty size; until stty size | grep '^40 100'; do sleep 0.05; done; read line; echo got $line; exit 7";
  const terminal = await sandbox.terminal(line, { rows: 30, columns: 90, command_timeout: 30 });
  let shown = "";
  let resized = false;
  let typed = false;
  for await (const data of terminal) {
    shown += Buffer.from(data).toString();
    if (shown.includes("30 90") && !resized) {
      resized = true;
      await terminal.resize(40, 100);
    }
    if (shown.includes("40 100") && !typed) {
      typed = true;
      await terminal.write("hello\n");
    }
  }
  assert.match(shown, /40 100[^]*got hello/);
  assert.equal(terminal.result.exit_code, 7);
}

async function files(sandbox) {
  assert.equal(await sandbox.files.write("a.txt", "hello"), 5);
  assert.equal(await sandbox.files.write("run.sh", Buffer.from("#!/bin/sh\necho ran\n"), { mode: 0o755 }), 19);
  assert.equal((await sandbox.run("./run.sh")).stdout, "ran\n");
  assert.equal(Buffer.from(await sandbox.files.read("a.txt")).toString(), "hello");
  assert.equal(Buffer.from(await sandbox.files.read("a.txt", { offset: 1, length: 3 })).toString(), "ell");
  assert.equal(await sandbox.files.text("a.txt"), "hello");
  const block = Buffer.alloc(70000, "x");
  assert.equal(await sandbox.files.write("pieces", [block, block, block]), 210000);
  const status = await sandbox.files.stat("a.txt");
  assert.deepEqual([status.size, status.type], [5, "regular file"]);
  await sandbox.files.mkdir("d/e");
  await sandbox.files.move("a.txt", "d/b.txt");
  assert.ok((await sandbox.files.list("d")).some((one) => one.name === "b.txt"));
  for (const wrong of ["a.txt", "nowhere/x"]) {
    await assert.rejects(sandbox.files.read(wrong), (error) =>
      error instanceof NotFoundError && error.status === 404 && error.code === "not_found" && error.reason !== "");
  }
  await assert.rejects(sandbox.files.read("../../../etc/passwd"), (error) =>
    [ForbiddenError, NotFoundError, InvalidRequestError].some((kind) => error instanceof kind));

  const up = join(scratch, "up");
  const down = join(scratch, "down");
  const tar = join(scratch, "d.tar");
  writeFileSync(up, Buffer.alloc(512000, "0123456789"));
  assert.equal(await sandbox.files.upload(up, "d/up"), 512000);
  assert.equal(await sandbox.files.download("d/up", down), 512000);
  assert.ok(readFileSync(up).equals(readFileSync(down)));
  await sandbox.files.pack("d", tar);
  assert.match(execFileSync("tar", ["-tf", tar]).toString(), /^\.\/up$/m);
  await sandbox.files.unpack(tar, "unpacked");
  assert.equal((await sandbox.files.stat("unpacked/up")).size, 512000);

  const changes = await sandbox.files.watch("d");
  await sandbox.files.write("d/new", "1");
  for await (const change of changes) {
    if (!change.path.endsWith("new")) continue;
    assert.equal(change.kind, "created");
    break;
  }
  await sandbox.files.remove("d", { recursive: true });
}

/** Uses names that are not UTF-8 with every method. */
async function names(sandbox) {
  const { files } = sandbox;
  await files.mkdir("names");
  const changes = await files.watch("names");
  // Valid UTF-8, and a byte that is not.
  await sandbox.run(String.raw`printf 1 > "$(printf 'names/\303\244\377\360\237\230\200b')"`);
  for await (const change of changes) {
    assert.deepEqual([change.kind, change.path], ["created", "names/ä\udcff😀b"]);
    break;
  }
  const [listed] = await files.list("names");
  assert.equal(listed.name, "ä\udcff😀b");
  const path = `names/${listed.name}`;
  assert.equal(await files.text(path), "1");
  assert.equal((await files.stat(path)).name, listed.name);
  assert.equal(await files.write(path, "22"), 2);
  assert.equal(await files.text(path), "22");
  await files.mkdir("names/d\udcfe/e");
  await files.move(path, "names/d\udcfe/plain");
  await files.move("names/d\udcfe/plain", "names/d\udcfe/\udc80");
  const local = join(scratch, "name");
  const tar = join(scratch, "names.tar");
  assert.equal(await files.download("names/d\udcfe/\udc80", local), 2);
  assert.equal(await files.upload(local, "names/d\udcfe/up\udcfd"), 2);
  await files.pack("names/d\udcfe", tar);
  await files.unpack(tar, "names/u\udcfc");
  const unpacked = (await files.list("names/u\udcfc")).map((one) => one.name);
  assert.deepEqual(unpacked.sort(), ["e", "up\udcfd", "\udc80"]);
  await files.remove("names/d\udcfe/\udc80");
  const shown = Buffer.from((await sandbox.run("find names/d* -type f")).stdout_raw);
  assert.equal(shown.toString("latin1"), "names/d\xfe/up\xfd\n");
  await files.remove("names", { recursive: true });
}

async function history(owner) {
  const kept = join(workspace, "kept");
  writeFileSync(kept, "old\n");
  const sandbox = await Sandbox.create({ client: owner, workspace, name: "history" });
  await sandbox.files.write("kept", "new\n");
  const first = await sandbox.checkpoint("first");
  await sandbox.files.remove("kept");
  await sandbox.restore(first.name);
  assert.equal(await sandbox.files.text("kept"), "new\n");
  assert.ok((await sandbox.checkpoints()).some((one) => one.name === "first"));
  const diff = await sandbox.diff({ patch: true });
  assert.deepEqual(diff.changes.map((one) => [one.path, one.kind]), [["kept", "modified"]]);
  assert.match(diff.changes[0].patch, /^\+new$/m);
  const forked = await sandbox.fork({ name: "forked" });
  assert.notEqual(forked.id, sandbox.id);
  assert.equal(await forked.files.text("kept"), "new\n");
  await forked.destroy();
  await assert.rejects(sandbox.commit({ expect: "0".repeat(64) }), (error) =>
    [ConflictError, InvalidRequestError, UnavailableError].some((kind) => error instanceof kind));
  const planned = await sandbox.commit({ dry_run: true });
  assert.equal(readFileSync(kept, "utf8"), "old\n");
  const done = await sandbox.commit({ expect: planned.digest });
  assert.equal(done.digest, planned.digest);
  assert.equal(readFileSync(kept, "utf8"), "new\n");
  await commitNames(sandbox);
  await sandbox.destroy();
}

/** Selects one of two files whose names are not UTF-8. */
async function commitNames(sandbox) {
  await sandbox.run(String.raw`printf x > "$(printf 'n\377\nx')"; printf y > "$(printf 'n\376\nx')"; printf 'l\351\n' > latin`);
  const changes = new Map((await sandbox.diff({ patch: true })).changes.map((one) => [one.path, one]));
  assert.deepEqual([...changes.keys()].sort(), ["latin", "n\udcfe\nx", "n\udcff\nx"]);
  assert.ok(changes.get("latin").patch.includes("\n+l\udce9\n"));
  const paths = ["n\udcff\nx"];
  const planned = await sandbox.commit({ paths, dry_run: true });
  assert.deepEqual(planned.applied.map((one) => one.path), paths);
  await sandbox.commit({ paths, expect: planned.digest });
  const written = readdirSync(Buffer.from(workspace), { encoding: "buffer" }).map((name) => name.toString("latin1"));
  assert.deepEqual(written.filter((name) => name.startsWith("n")), ["n\xff\nx"]);
  unlinkSync(Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from("n\xff\nx", "latin1")]));
}

async function network(sandbox) {
  const server = await sandbox.start("mkdir -p www; echo page > www/index.html; python3 -m http.server -d www 8000");
  const port = await sandbox.expose(8000);
  assert.equal(port.port, 8000);
  assert.match(port.preview_url, /8000/);
  let page = "";
  for (let tries = 0; tries < 200 && page === ""; ++tries) {
    try {
      page = await (await fetch(`http://127.0.0.1:${port.host_port}/`)).text();
    } catch {
      await sandbox.run("sleep 0.1");
    }
  }
  assert.equal(page, "page\n");
  assert.deepEqual((await sandbox.ports()).map((one) => one.port), [8000]);
  await sandbox.unexpose(8000);
  assert.deepEqual(await sandbox.ports(), []);
  await server.kill();
  assert.deepEqual((await sandbox.network.allow("example.org", { stop: true })).allowed_hosts, ["example.org"]);
  await sandbox.network.deny("bad.example.org");
  assert.deepEqual((await sandbox.network.remove("example.org")).allowed_hosts, []);
  assert.equal((await sandbox.network.get()).mode, "proxy");
  assert.deepEqual(await sandbox.network.credentials(), []);
}

async function server(owner, sandbox) {
  assert.ok((await owner.health()) && (await owner.ready()));
  assert.ok((await owner.whoami()).owner);
  assert.match(await owner.metrics(), /caisson/);
  assert.ok((await owner.stats()).sandboxes >= 1);
  assert.deepEqual((await owner.templates()).map((one) => one.name), ["small"]);
  const images = await owner.images().catch((error) => {
    assert.ok(error instanceof UnavailableError && error.status === 501);
    return [];
  });
  assert.ok(Array.isArray(images));
  assert.ok((await owner.policies.list()).includes("dev"));
  assert.ok((await owner.policies.get("dev")).explanation);
  assert.ok((await owner.policies.check({ resources: { memory: "256M" } })).valid);
  assert.ok(!(await owner.policies.check({ resources: { memory: "much" } })).valid);
  assert.match((await owner.openapi()).openapi, /^3\.1/);
  assert.ok((await owner.audit.query({ sandbox: sandbox.id, limit: 5 })).length > 0);
  const records = await owner.audit.stream();
  const events = await owner.events();
  const small = await Sandbox.create({ client: owner, template: "small", labels: { scenario: "typescript" } });
  for await (const event of events) {
    if (event.sandbox_id !== small.id) continue;
    assert.equal(event.type, "sandbox.created");
    break;
  }
  // The stream begins at the end of the log when the server first reads it. Each request adds a record.
  for (let i = 0; i < 20; ++i) await owner.whoami();
  for await (const record of records) {
    assert.ok(record.seq > 0 && record.event);
    break;
  }
  const listed = await owner.sandboxes({ label: "scenario=typescript" });
  assert.deepEqual(listed.sandboxes.map((one) => one.id), [small.id]);
  const page = await owner.sandboxes({ limit: 1 });
  assert.equal(page.sandboxes.length, 1);
  const next = await owner.sandboxes({ limit: 1, cursor: page.next_cursor });
  assert.notEqual(next.sandboxes[0].id, page.sandboxes[0].id);
  await small.destroy();
}

async function tokens(owner) {
  const caller = new Client({ url, token, on_response });
  assert.ok(!(await caller.whoami()).owner);
  const sandbox = await Sandbox.create({ client: caller, idempotency_key: "create-1" });
  assert.equal((await Sandbox.create({ client: caller, idempotency_key: "create-1" })).id, sandbox.id);
  assert.equal((await sandbox.run("ls -A; echo ok")).stdout, "ok\n");
  assert.equal((await sandbox.run("echo long", { command_timeout: 1000 })).stdout, "long\n"); // longer than fetch waits
  await sandbox.files.upload(join(scratch, "up"), "up");
  assert.equal(await sandbox.files.download("up", join(scratch, "down")), 512000);
  const over = await sandbox.terminal("echo over tcp");
  let shown = "";
  for await (const data of over) shown += Buffer.from(data).toString();
  assert.match(shown, /over tcp/);
  let asked;
  await assert.rejects(sandbox.network.allow("example.org"), (error) => {
    asked = error.approvals?.[0];
    return error instanceof ApprovalRequiredError;
  });
  assert.ok((await caller.approvals.list()).some((one) => one.id === asked.id));
  assert.equal((await owner.approvals.get(asked.id)).state, "pending");
  await assert.rejects(caller.approvals.answer(asked.id, "allow"), ForbiddenError);
  assert.equal((await owner.approvals.answer(asked.id, "allow", { seconds: 60 })).state, "allowed");
  assert.deepEqual((await sandbox.network.allow("example.org")).allowed_hosts, ["example.org"]);
  await sandbox.destroy();
  caller.close();
  const stranger = new Client({ url, token: "wrong", on_response });
  await assert.rejects(stranger.sandboxes(), (error) => error instanceof UnauthorizedError && error.try !== "");
}

const owner = new Client({ on_response });
const sandbox = await Sandbox.create({ client: owner, name: "main", memory: "512M", command_timeout: 60 });
assert.deepEqual([sandbox.info.name, sandbox.info.command_timeout], ["main", 60]);
assert.equal((await Sandbox.connect(sandbox.id, { client: owner })).id, sandbox.id);
assert.equal((await sandbox.extend(1800)).sandbox_timeout, 1800);
assert.equal((await sandbox.refresh()).state, "running");
await commands(sandbox);
await files(sandbox);
await names(sandbox);
await network(sandbox);
await server(owner, sandbox);
await history(owner);
await tokens(owner);
await sandbox.destroy();
await assert.rejects(sandbox.refresh(), NotFoundError);
owner.close();
console.log(JSON.stringify(requests));
