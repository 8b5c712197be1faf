// transport_probe.mjs NAME URL SCRATCH CLIENT: runs the TypeScript client with a peer of transport_test.py; prints one line.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [name, url, scratch, clientPath] = process.argv.slice(2);
const { CaissonError, Client, Sandbox } = await import(pathToFileURL(clientPath));

async function probe(client, sandbox) {
  if (name.startsWith("resume")) {
    const stream = await sandbox.stream("anything");
    let text = "";
    for await (const piece of stream) text += piece.text;
    return [text, stream.info?.exit_code ?? null];
  }
  if (name === "ended_events") {
    for await (const event of await client.events()) void event;
    return "ended";
  }
  if (name.endsWith("terminal")) {
    const terminal = await sandbox.terminal();
    let shown = "";
    for await (const data of terminal) shown += Buffer.from(data).toString();
    return [shown, terminal.result];
  }
  if (name === "refused_upload") {
    const block = Buffer.alloc(65536, "x");
    return sandbox.files.write("a", (function* () { for (let i = 0; i < 2000; ++i) yield block; })());
  }
  if (name === "cut_body") return sandbox.files.download("a", join(scratch, "cut"));
  if (name.startsWith("idle_")) {
    await client.whoami();
    if (name === "idle_put") return sandbox.files.write("a", "content");
    if (name === "idle_post") return (await sandbox.run("anything")).stdout;
  }
  return (await client.whoami()).name;
}

const client = new Client({ url, request_timeout: name === "silent" ? 0.5 : 20, start: false });
const info = { id: "a b/c", name: "", labels: {}, state: "running", created: 0, expires_in: 0 };
const sandbox = await Sandbox.connect("a b/c", { client: { ...{ request: async () => info } } });
Object.assign(sandbox, { client });
sandbox.files.client = client;
let outcome;
try {
  outcome = await probe(client, sandbox);
} catch (error) {
  if (!(error instanceof CaissonError)) throw error;
  outcome = error.name;
}
client.close();
console.log(JSON.stringify(outcome));
