// The whole flow of a task, driven by the official TypeScript clients (SDK v1 and v2, both eras, stdio and HTTP), with
// the questions of the server answered, and by the Inspector's command line.
//   node clients.mjs CAISSON SCRATCH_DIRECTORY
// Run from the directory in which the packages are installed.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync, existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [caisson, scratch] = process.argv.slice(2);
const require = createRequire(join(process.cwd(), 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const v1 = {
  ...(await load('@modelcontextprotocol/sdk/client/index.js')),
  ...(await load('@modelcontextprotocol/sdk/client/stdio.js')),
  ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
  ...(await load('@modelcontextprotocol/sdk/types.js')),
};
const v2 = { ...(await load('@modelcontextprotocol/client')), ...(await load('@modelcontextprotocol/client/stdio')) };

let number = 0;
function place() {
  const base = join(scratch, `run-${++number}`);
  for (const name of ['state', 'project', 'other']) mkdirSync(join(base, name), { recursive: true });
  writeFileSync(join(base, 'project', 'a.txt'), 'from the host\n');
  return { state: join(base, 'state'), project: join(base, 'project'), other: join(base, 'other') };
}

const environment = (where) => ({
  ...process.env, CAISSON_HOME: where.state, CLAUDE_PROJECT_DIR: where.project, CAISSON_LOG: 'info',
});

const clientInfo = { name: 'caisson-tests', version: '1' };
const capabilities = { elicitation: { form: {} }, roots: {} };

function makeClient(kind, answers) {
  const respond = async (request) => {
    answers.asked.push(request.params.message);
    return answers.next;
  };
  if (kind === 'v1') {
    const client = new v1.Client(clientInfo, { capabilities });
    client.setRequestHandler(v1.ElicitRequestSchema, respond);
    client.setRequestHandler(v1.ListRootsRequestSchema, async () => ({ roots: [] }));
    return client;
  }
  const mode = kind === 'v2-modern' ? { pin: '2026-07-28' } : kind === 'v2-auto' ? 'auto' : 'legacy';
  const client = new v2.Client(clientInfo, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', respond);
  client.setRequestHandler('roots/list', async () => ({ roots: [] }));
  return client;
}

async function flow(client, where, answers) {
  const call = async (name, args) => {
    const result = await client.callTool({ name, arguments: args });
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`);
    assert.ok(result.structuredContent, `${name} has no structured content`);
    return result.structuredContent;
  };
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 13 && tools.every((tool) => tool.outputSchema?.type === 'object'));
  const { sandbox_id } = await call('sandbox_create', { workspace_path: where.project });
  const ran = await call('sandbox_execute', { sandbox_id, command: 'cat a.txt; echo new > a.txt; exit 7' });
  assert.deepEqual([ran.status, ran.exit_code, ran.stdout], ['exited', 7, 'from the host\n']);
  await call('sandbox_write_file', { sandbox_id, path: 'b.txt', content: 'first' });
  assert.equal((await call('sandbox_read_file', { sandbox_id, path: 'b.txt' })).content, 'first');
  const { checkpoint } = await call('sandbox_checkpoint', { sandbox_id, stop_processes: true });
  await call('sandbox_write_file', { sandbox_id, path: 'b.txt', content: 'second' });
  await call('sandbox_restore', { sandbox_id, checkpoint, stop_processes: true });
  assert.equal((await call('sandbox_read_file', { sandbox_id, path: 'b.txt' })).content, 'first');
  const { changes } = await call('sandbox_diff', { sandbox_id });
  assert.deepEqual(changes.map((change) => `${change.change} ${change.path}`), ['modified a.txt', 'added b.txt']);
  assert.equal(readFileSync(join(where.project, 'a.txt'), 'utf8'), 'from the host\n');

  // A directory beyond the workspace: the person is asked, and both answers count.
  answers.next = { action: 'decline' };
  const refused = await client.callTool({ name: 'sandbox_create', arguments: { workspace_path: where.other } });
  assert.equal(refused.isError, true);
  answers.next = { action: 'accept', content: { decision: 'allow' } };
  const second = await call('sandbox_create', { workspace_path: where.other });
  assert.equal(answers.asked.length, 2);
  assert.ok(answers.asked[0].includes(where.other));

  // A host on the network: the same, and a yes is kept where the owner finds it.
  answers.next = { action: 'accept', content: { decision: 'deny' } };
  const wish = { sandbox_id, host: 'example.org', stop_processes: true };
  assert.equal((await client.callTool({ name: 'sandbox_network', arguments: wish })).isError, true);
  answers.next = { action: 'accept', content: { decision: 'allow for this sandbox' } };
  assert.deepEqual((await call('sandbox_network', wish)).allowed_hosts, ['example.org']);
  const [kept] = JSON.parse(execFileSync(caisson, ['approvals', 'list', '--json'],
    { env: environment(where), encoding: 'utf8' }));
  assert.deepEqual([kept.what, kept.session, kept.by], ['host:example.org', sandbox_id, 'elicitation']);
  execFileSync(caisson, ['approvals', 'revoke', kept.id], { env: environment(where) });
  assert.equal((await call('sandbox_info', { sandbox_id })).allowed_hosts, undefined);

  const list = await client.listResources();
  assert.ok(list.resources.some((resource) => resource.uri.includes(sandbox_id)));
  const read = await client.readResource({ uri: `caisson://${sandbox_id}/info` });
  assert.equal(JSON.parse(read.contents[0].text).sandbox_id, sandbox_id);
  const prompt = await client.getPrompt({ name: 'diagnose-denial', arguments: { sandbox_id } });
  assert.ok(prompt.messages[0].content.text.includes(sandbox_id));

  const controller = new AbortController();
  const long = client.callTool({ name: 'sandbox_execute', arguments: { sandbox_id, command: 'sleep 300' } },
    ...(answers.kind === 'v1' ? [undefined] : []), { signal: controller.signal });
  setTimeout(() => controller.abort(), 500);
  await assert.rejects(long);
  let left;
  for (let i = 0; i < 50; ++i) {
    left = await call('sandbox_execute', { sandbox_id, command: 'pgrep sleep || echo none' });
    if (left.stdout === 'none\n') break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(left.stdout, 'none\n', 'a cancelled command lives on');

  for (const id of [sandbox_id, second.sandbox_id]) await call('sandbox_destroy', { sandbox_id: id });
  const gone = await client.callTool({ name: 'sandbox_execute', arguments: { sandbox_id, command: 'true' } });
  assert.equal(gone.isError, true);
}

async function overStdio(kind) {
  const where = place();
  const answers = { asked: [], next: null, kind };
  const client = makeClient(kind, answers);
  const sdk = kind === 'v1' ? v1 : v2;
  await client.connect(new sdk.StdioClientTransport({
    command: caisson, args: ['mcp'], env: environment(where), stderr: 'ignore',
  }));
  await flow(client, where, answers);
  await client.close();
  assert.equal(execFileSync(caisson, ['session', 'list'], { env: environment(where), encoding: 'utf8' }), '');
}

async function overHttp(kind) {
  const where = place();
  const server = spawn(caisson, ['mcp', '--http', '0'],
    { env: environment(where), stdio: ['ignore', 'ignore', 'pipe'] });
  const url = await new Promise((resolve, reject) => {
    let text = '';
    server.stderr.on('data', (piece) => {
      text += piece;
      const found = /"url":"([^"]*)"/.exec(text);
      if (found) resolve(found[1]);
    });
    server.on('exit', () => reject(new Error(`the server ended: ${text}`)));
  });
  try {
    const open = await fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
    assert.equal(open.status, 401);
    const token = readFileSync(join(where.state, 'mcp', 'token'), 'utf8').trim();
    const answers = { asked: [], next: null, kind };
    const client = makeClient(kind, answers);
    const sdk = kind === 'v1' ? v1 : v2;
    await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url),
      { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
    await flow(client, where, answers);
    await client.close();
  } finally {
    server.removeAllListeners('exit');
    server.kill('SIGTERM');
    await new Promise((resolve) => server.on('exit', resolve));
  }
}

function inspector(era) {
  const where = place();
  const run = (...args) => JSON.parse(execFileSync(process.execPath,
    [join(process.cwd(), 'node_modules/.bin/mcp-inspector'), '--cli', caisson, 'mcp', '--workspace', where.project,
      '--protocol-era', era, '--format', 'json', ...args],
    { env: { ...environment(where), CAISSON_LOG: 'off', MCP_INSPECTOR_SECRET_STORE: 'memory' }, encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'] })).result;
  const tool = (name, args) => run('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))
    .structuredContent;
  assert.ok(run('--method', 'tools/list', '--strict').tools.length >= 13);
  // Each call is a server of its own: the sandbox is made to stay, and its id is the only thing they share.
  const { sandbox_id } = tool('sandbox_create', { keep: true });
  assert.equal(tool('sandbox_execute', { sandbox_id, command: 'cat a.txt' }).stdout, 'from the host\n');
  tool('sandbox_write_file', { sandbox_id, path: 'c.txt', content: 'c' });
  assert.equal(tool('sandbox_read_file', { sandbox_id, path: 'c.txt' }).content, 'c');
  const { checkpoint } = tool('sandbox_checkpoint', { sandbox_id, stop_processes: true });
  tool('sandbox_restore', { sandbox_id, checkpoint, stop_processes: true });
  assert.equal(tool('sandbox_diff', { sandbox_id }).total_changes, 1);
  assert.equal(tool('sandbox_destroy', { sandbox_id }).destroyed, true);
}

const tests = [];
for (const kind of ['v1', 'v2-legacy', 'v2-modern', 'v2-auto']) {
  tests.push([`SDK ${kind} over stdio`, () => overStdio(kind)]);
  tests.push([`SDK ${kind} over HTTP`, () => overHttp(kind)]);
}
for (const era of ['legacy', 'modern']) tests.push([`Inspector, ${era}`, async () => inspector(era)]);

let failed = 0;
for (const [name, test] of tests) {
  try {
    await test();
    console.log(`ok      ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}: ${error?.stack ?? error}`);
  }
}
process.exit(failed ? 1 : 0);
