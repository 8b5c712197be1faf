// The official TypeScript clients (SDK v1 and v2, both protocol versions, stdio and HTTP) use every tool, answer the
// prompts of the server, and run commands as tasks. The Inspector's command line does the same for one sandbox.
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
// This package supports only `import`, so it cannot be resolved like the others.
const tasks = await import(pathToFileURL(
  join(process.cwd(), 'node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js')));
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
  const used = new Set();
  const call = async (name, args) => {
    used.add(name);
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
  await call('sandbox_edit_file', { sandbox_id, path: 'b.txt', old_text: 'first', new_text: 'edited' });
  const { files } = await call('sandbox_download', { sandbox_id, paths: ['b.txt'] });
  assert.equal((await client.readResource({ uri: files[0].uri })).contents[0].text, 'edited');
  await call('sandbox_upload', { sandbox_id, path: '/tmp/copy', source: files[0].uri });
  assert.equal((await call('sandbox_read_file', { sandbox_id, path: '/tmp/copy' })).content, 'edited');
  const fork = await call('sandbox_fork', { sandbox_id, stop_processes: true });
  assert.equal((await call('sandbox_read_file', { sandbox_id: fork.sandbox_id, path: 'b.txt' })).content, 'edited');
  const { exec_id } = await call('sandbox_execute',
    { sandbox_id, command: 'cat', background: true, keep_stdin: true });
  await call('sandbox_process', { sandbox_id, exec_id, action: 'input', data: 'typed', close: true });
  assert.equal((await call('sandbox_process', { sandbox_id, exec_id })).stdout, 'typed');
  const listed = (await call('sandbox_list', {})).sandboxes.map((sandbox) => sandbox.sandbox_id);
  assert.ok(listed.includes(sandbox_id) && listed.includes(fork.sandbox_id));
  answers.next = { action: 'accept', content: { decision: 'allow' } };
  await call('sandbox_commit', { sandbox_id, paths: ['b.txt'] });
  assert.equal(readFileSync(join(where.project, 'b.txt'), 'utf8'), 'edited');
  answers.asked.length = 0;

  // A directory outside the workspace: the user is prompted and may allow or deny. After a denial there is no new prompt.
  answers.next = { action: 'decline' };
  for (let times = 0; times < 2; ++times) {
    const refused = await client.callTool({ name: 'sandbox_create', arguments: { workspace_path: '/usr' } });
    assert.equal(refused.isError, true);
  }
  answers.next = { action: 'accept', content: { decision: 'allow' } };
  const second = await call('sandbox_create', { workspace_path: where.other });
  assert.equal(answers.asked.length, 2);
  assert.ok(answers.asked[0].includes('/usr') && answers.asked[1].includes(where.other));

  // A network host: the same, and the approval is in the owner's list of approvals.
  answers.next = { action: 'accept', content: { decision: 'deny' } };
  const wish = { sandbox_id, host: 'example.org', stop_processes: true };
  const denied = { ...wish, host: 'example.net' };
  assert.equal((await client.callTool({ name: 'sandbox_network', arguments: denied })).isError, true);
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

  // Progress of a long command is reported every five seconds.
  const progress = [];
  const slow = { name: 'sandbox_execute', arguments: { sandbox_id, command: 'echo working; sleep 6' } };
  const { structuredContent: waited } = await client.callTool(slow,
    ...(answers.kind === 'v1' ? [undefined] : []), { onprogress: (one) => progress.push(one) });
  assert.equal(waited.exit_code, 0);
  assert.ok(progress.length >= 1 && progress[0].message === 'working', JSON.stringify(progress));

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

  if (answers.kind === 'v1') await legacyTask(client, sandbox_id, answers);
  for (const id of [sandbox_id, second.sandbox_id, fork.sandbox_id]) await call('sandbox_destroy', { sandbox_id: id });
  const gone = await client.callTool({ name: 'sandbox_execute', arguments: { sandbox_id, command: 'true' } });
  assert.equal(gone.isError, true);
  assert.deepEqual(tools.map((tool) => tool.name).filter((name) => !used.has(name)), [], 'tools that were not used');
}

// The tasks of 2025-11-25, which only the v1 client supports.
async function legacyTask(client, sandbox_id, answers) {
  const run = async (args) => {
    const seen = [];
    for await (const message of client.experimental.tasks.callToolStream(
      { name: 'sandbox_execute', arguments: { sandbox_id, ...args } }, v1.CallToolResultSchema,
      { task: { ttl: 60000 } })) {
      assert.notEqual(message.type, 'error', String(message.error));
      seen.push(message);
    }
    assert.equal(seen[0].type, 'taskCreated');
    return [seen.at(-1).result.structuredContent, seen];
  };
  const [result, seen] = await run({ command: 'echo begin; sleep 3; echo end; exit 3' });
  assert.deepEqual([result.exit_code, result.stdout], [3, 'begin\nend\n']);
  assert.ok(seen.some((message) => message.task?.statusMessage === 'begin'), JSON.stringify(seen));
  // A command that needs input: the user is prompted while the client waits for the result.
  answers.asked.length = 0;
  answers.next = { action: 'accept', content: { text: 'typed', end: true } };
  const [read] = await run({ command: 'cat', keep_stdin: true });
  assert.deepEqual([read.stdout, answers.asked.length], ['typed\n', 1]);
  const endless = { name: 'sandbox_execute', arguments: { sandbox_id, command: 'sleep 300' } };
  for await (const message of client.experimental.tasks.callToolStream(endless, v1.CallToolResultSchema,
    { task: { ttl: 60000 } })) {
    if (message.type !== 'taskCreated') continue;
    assert.equal((await client.experimental.tasks.getTask(message.task.taskId)).status, 'working');
    assert.equal((await client.experimental.tasks.cancelTask(message.task.taskId)).status, 'cancelled');
    break;
  }
}

// The tasks extension of 2026-07-28. The v2 client rejects results of type `task`, so its transports are used directly;
// messages and headers still come from the SDK.
// `connect` creates a transport; `reconnects`: the server outlives it.
async function modernTasks(connect, where, reconnects) {
  const waiting = new Map();
  let number = 0;
  let transport;
  const open = async () => {
    transport = connect();
    transport.onmessage = (message) => waiting.get(message.id)?.(message);
    await transport.start();
  };
  await open();
  const request = async (method, params) => {
    const id = ++number;
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} },
        extensions: { 'io.modelcontextprotocol/tasks': {} } } };
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ jsonrpc: '2.0', id, method, params: { ...params, _meta } });
    const { result, error } = await answered;
    assert.ok(result, `${method}: ${JSON.stringify(error)}`);
    return result;
  };
  const call = (name, args) => request('tools/call', { name, arguments: args });
  const until = async (taskId, ...wanted) => {
    for (let i = 0; i < 300; ++i) {
      const task = await request('tasks/get', { taskId });
      if (wanted.includes(task.status)) return task;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`the task did not become ${wanted}`);
  };
  const { capabilities } = await request('server/discover', {});
  assert.ok(capabilities.extensions['io.modelcontextprotocol/tasks']);
  const { structuredContent: { sandbox_id } } = await call('sandbox_create', { workspace_path: where.project });
  const quick = await call('sandbox_execute', { sandbox_id, command: 'echo quick', wait_ms: 30000 });
  assert.deepEqual([quick.resultType, quick.structuredContent.stdout], ['complete', 'quick\n']);
  const long = await call('sandbox_execute', { sandbox_id, command: 'echo begin; sleep 3; echo end; exit 3', wait_ms: 0 });
  assert.equal(long.resultType, 'task');
  let partial;
  do {
    partial = await request('tasks/get', { taskId: long.taskId });
  } while (partial.status === 'working' && partial._meta['caisson/command'].stdout === '');
  assert.deepEqual([partial.status, partial.statusMessage], ['working', 'begin']);
  if (reconnects) {
    await transport.close();
    await open();
  }
  const { result } = await until(long.taskId, 'completed');
  assert.deepEqual([result.structuredContent.exit_code, result.structuredContent.stdout], [3, 'begin\nend\n']);
  const asking = await call('sandbox_execute', { sandbox_id, command: 'head -n 1', wait_ms: 0, keep_stdin: true });
  const [key] = Object.keys((await until(asking.taskId, 'input_required')).inputRequests);
  await request('tasks/update', { taskId: asking.taskId,
    inputResponses: { [key]: { action: 'accept', content: { text: 'typed' } } } });
  assert.equal((await until(asking.taskId, 'completed')).result.structuredContent.stdout, 'typed\n');
  const endless = await call('sandbox_execute', { sandbox_id, command: 'sleep 300', wait_ms: 0 });
  await request('tasks/cancel', { taskId: endless.taskId });
  await until(endless.taskId, 'cancelled');
  await call('sandbox_destroy', { sandbox_id });
  await transport.close();
}

async function modernTasksOverStdio() {
  const where = place();
  await modernTasks(() => new v2.StdioClientTransport({
    command: caisson, args: ['mcp', '--workspace', where.project], env: environment(where), stderr: 'ignore',
  }), where, false);
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

/// Calls `use` with the directories and the transport options of a running HTTP server.
async function withHttpServer(use) {
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
    const token = readFileSync(join(where.state, 'mcp', 'token'), 'utf8').trim();
    await use(where, new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
  } finally {
    server.removeAllListeners('exit');
    server.kill('SIGTERM');
    await new Promise((resolve) => server.on('exit', resolve));
  }
}

async function overHttp(kind) {
  await withHttpServer(async (where, url, options) => {
    const open = await fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
    assert.equal(open.status, 401);
    const answers = { asked: [], next: null, kind };
    const client = makeClient(kind, answers);
    const sdk = kind === 'v1' ? v1 : v2;
    await client.connect(new sdk.StreamableHTTPClientTransport(url, options));
    await flow(client, where, answers);
    await client.close();
  });
}

async function modernTasksOverHttp() {
  await withHttpServer((where, url, options) =>
    modernTasks(() => new v2.StreamableHTTPClientTransport(url, options), where, true));
}

// The official tasks client, for both protocol versions. Requests of 2026-07-28 need a separate transport.
async function officialTasks(kind) {
  await withHttpServer(async (where, url, options) => {
    const modern = kind === 'v2-modern';
    const connect = async () => {
      const connected = new v2.Client(clientInfo,
        { capabilities, versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' } });
      await connected.connect(new v2.StreamableHTTPClientTransport(url, options));
      return connected;
    };
    const client = await connect();
    const { structuredContent: { sandbox_id } } = await client.callTool(
      { name: 'sandbox_create', arguments: { workspace_path: where.project } });
    const transport = new v2.StreamableHTTPClientTransport(url, options);
    const waiting = new Map();
    transport.onmessage = (message) => waiting.get(message.id)?.(message);
    await transport.start();
    let number = 0;
    const rawDispatch = async (request) => {
      const id = `raw-${++number}`;
      const answered = new Promise((resolve) => waiting.set(id, resolve));
      await transport.send({ jsonrpc: '2.0', ...request, id });
      const { result, error } = await answered;
      return error ? { kind: 'error', error } : { kind: 'result', result };
    };
    const asked = [];
    const open = (connected) => tasks.createTaskSessionFromClient(connected, {
      endpointId: 'caisson',
      onInputRequest: async (request, context) => {
        asked.push([request.kind, context.scope]);
        return { action: 'accept', content: { text: 'typed', end: true } };
      },
      ...(modern ? { rawDispatch,
        v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo, clientCapabilities: capabilities } } : {}),
    });
    const session = open(client);
    const begin = async (args) => {
      const execution = await session.callTool('sandbox_execute', { sandbox_id, wait_ms: 0, ...args },
        { task: { preference: 'prefer' } });
      assert.equal(execution.kind, 'task');
      return execution;
    };
    const views = [];
    const { outcome } = await (await begin({ command: 'echo begin; sleep 3; echo end; exit 3' })).settle({
      onEvent: (event) => void views.push(tasks.taskViewFromExecutionEvent(event)?.statusMessage) });
    const { structuredContent } = tasks.resultFromTaskOutcome(outcome);
    assert.deepEqual([structuredContent.exit_code, structuredContent.stdout], [3, 'begin\nend\n']);
    assert.ok(views.includes('begin'), JSON.stringify(views));
    if (modern) {  // with 2025-11-25 it does not find the task of a prompt; the test of SDK v1 covers that
      const read = await (await begin({ command: 'cat', keep_stdin: true })).settle();
      assert.equal(tasks.resultFromTaskOutcome(read.outcome).structuredContent.stdout, 'typed\n');
      assert.deepEqual(asked, [['elicitation', 'task']]);
    }
    const endless = await begin({ command: 'sleep 300' });
    await endless.cancel();
    assert.equal((await endless.settle()).outcome.status, 'cancelled');
    // A second client continues the task with only the task's reference.
    const left = await begin({ command: 'sleep 2; echo resumed' });
    const other = await connect();
    const { outcome: resumed } = await (await open(other).resumeTask(left.serializeReference())).settle();
    assert.equal(tasks.resultFromTaskOutcome(resumed).structuredContent.stdout, 'resumed\n');
    await other.close();
    await client.callTool({ name: 'sandbox_destroy', arguments: { sandbox_id } });
    await session.close();
    await transport.close();
    await client.close();
  });
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
  // Each call starts a separate server, so the sandbox is persistent, and the calls share only its id.
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
tests.push(['tasks over stdio, SDK v2 transport', modernTasksOverStdio]);
tests.push(['tasks over HTTP, SDK v2 transport', modernTasksOverHttp]);
for (const kind of ['v2-legacy', 'v2-modern'])
  tests.push([`official tasks client, SDK ${kind} over HTTP`, () => officialTasks(kind)]);
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
