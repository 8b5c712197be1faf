// A sandbox: commands, files, history, network.
import { Client } from "./client.js";
import { Command, encodeInput } from "./command.js";
import { ProtocolError } from "./errors.js";
import { CommandOutput, decodeBytes } from "./events.js";
import { Files } from "./files.js";
import { decodePath, encodePaths } from "./names.js";
import { Network } from "./network.js";
import { Terminal } from "./terminal.js";
import type { Checkpoint, CommandInfo, Commit, Diff, Operations, Port, RunResult, SandboxInfo } from "./types.js";
import type * as api from "./api.js";

/** A shell command line, or a program and its arguments. */
export type CommandLine = string | readonly string[];

export type CreateOptions = api.CreateSandboxBody & {
  /** Default: new Client(): the server in CAISSON_URL, or the user's own. */
  client?: Client | undefined;
  /** A repeated request with the same key returns the sandbox of the first one. */
  idempotency_key?: string | undefined;
};

/** Paths are text; bytes that are not UTF-8 are lone surrogates, as in results. */
export type CommitOptions = Omit<api.CommitChangesBody, "encoding">;

interface CommandOptions {
  cwd?: string | undefined;
  environment?: Record<string, string> | undefined;
  stdin?: string | Uint8Array | undefined;
  /** Seconds after which the command is killed. */
  command_timeout?: number | undefined;
}
export interface RunOptions extends CommandOptions {
  /** Bytes of each stream in the result. */
  output_limit?: number | undefined;
  idempotency_key?: string | undefined;
}
export interface StreamOptions extends CommandOptions {
  /** Leave standard input open, for Command.write(). */
  keep_stdin?: boolean | undefined;
}
export interface StartOptions extends StreamOptions {
  idempotency_key?: string | undefined;
}

const day = 24 * 3600;

function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { "Idempotency-Key": key };
}

function commandBody(command: CommandLine, options: StartOptions, mode?: "background" | "stream"): api.RunCommandBody {
  const { stdin, idempotency_key: _, ...fields } = options;
  const line = typeof command === "string" ? { command } : { args: [...command] };
  return { ...line, ...encodeInput(stdin, "stdin", "stdin_encoding"), ...fields, mode };
}

export function runResult(value: api.RunResult): RunResult {
  if (typeof value.stdout !== "string" || typeof value.stderr !== "string") throw new ProtocolError("incomplete RunResult");
  const stdout_raw = decodeBytes(value.stdout, value.stdout_encoding);
  const stderr_raw = decodeBytes(value.stderr, value.stderr_encoding);
  const ok = value.outcome === "exited" && value.exit_code === 0;
  return { ...value, stdout: stdout_raw.toString("utf8"), stderr: stderr_raw.toString("utf8"), stdout_raw, stderr_raw, ok };
}

/** One sandbox. With `await using` it is destroyed at the end of the block. */
export class Sandbox {
  readonly id: string;
  readonly files: Files;
  readonly network: Network;
  private readonly path: { id: string };

  private constructor(
    readonly client: Client,
    /** The state at the last create, connect, extend or refresh. */
    public info: SandboxInfo,
    private readonly ownsClient: boolean,
  ) {
    this.id = info.id;
    this.path = { id: info.id };
    this.files = new Files(client, info.id);
    this.network = new Network(client, info.id);
  }

  private static async open(client: Client | undefined, get: (used: Client) => Promise<SandboxInfo>): Promise<Sandbox> {
    const used = client ?? new Client();
    try {
      return new Sandbox(used, await get(used), client === undefined);
    } catch (error) {
      if (client === undefined) used.close();
      throw error;
    }
  }

  /** Creates a sandbox. */
  static create(options: CreateOptions = {}): Promise<Sandbox> {
    const { client, idempotency_key, ...body } = options;
    const headers = keyHeader(idempotency_key);
    return Sandbox.open(client, (used) => used.request("createSandbox", { body, headers }));
  }

  /** Connects to an existing sandbox, also one that another program created. */
  static connect(id: string, options: { client?: Client | undefined } = {}): Promise<Sandbox> {
    return Sandbox.open(options.client, (used) => used.request("getSandbox", { path: { id } }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  /** Returns the current state. */
  async refresh(): Promise<SandboxInfo> {
    return (this.info = await this.client.request("getSandbox", { path: this.path }));
  }

  /** Sets the seconds without a request after which the sandbox ends. */
  async extend(sandbox_timeout: number): Promise<SandboxInfo> {
    return (this.info = await this.client.request("extendSandbox", { path: this.path, body: { sandbox_timeout } }));
  }

  /** Kills all processes of the sandbox and removes its files. */
  async destroy(): Promise<void> {
    try {
      await this.client.request("destroySandbox", { path: this.path });
    } finally {
      if (this.ownsClient) this.client.close();
    }
  }

  /** Runs a command and waits for it. If the command fails, the result has the failure; there is no exception. */
  async run(command: CommandLine, options: RunOptions = {}): Promise<RunResult> {
    // The server sends nothing while the command runs.
    const longest = options.command_timeout || this.info.command_timeout || day;
    const result = await this.client.request("runCommand", {
      path: this.path,
      body: commandBody(command, options),
      headers: keyHeader(options.idempotency_key),
      timeout: longest + this.client.request_timeout,
    });
    return runResult(result as api.RunResult);
  }

  /** Starts a command in the background. */
  async start(command: CommandLine, options: StartOptions = {}): Promise<Command> {
    const started = await this.client.request("runCommand", {
      path: this.path,
      body: commandBody(command, options, "background"),
      headers: keyHeader(options.idempotency_key),
    });
    return this.command((started as CommandInfo).id);
  }

  /** Runs a command and returns an iterator over its output. */
  async stream(command: CommandLine, options: StreamOptions = {}): Promise<CommandOutput> {
    const body = commandBody(command, options, "stream");
    const source = await this.client.open_events("runCommand", { path: this.path, body });
    return new CommandOutput(source, (id, headers) =>
      this.client.open_events("streamOutput", { path: { id: this.id, command: id }, query: {}, headers }));
  }

  /** Returns a command of start() or stream() by its id, to attach to it again. */
  command(id: string): Command {
    return new Command(this.client, this.id, id);
  }

  /** The commands of start() and stream(). */
  async commands(): Promise<CommandInfo[]> {
    return (await this.client.request("listCommands", { path: this.path })).commands;
  }

  /** Opens a terminal with this shell command line, or with a shell. */
  terminal(command?: string, options: Omit<Operations["openTerminal"]["query"], "command"> = {}): Promise<Terminal> {
    return Terminal.open(this.client, this.id, { command, ...options });
  }

  /** Saves the workspace under a name. stop: kill running processes first, instead of ConflictError. */
  checkpoint(name?: string, options: { stop?: boolean } = {}): Promise<Checkpoint> {
    return this.client.request("createCheckpoint", { path: this.path, body: { name, ...options } });
  }

  async checkpoints(): Promise<Checkpoint[]> {
    return (await this.client.request("listCheckpoints", { path: this.path })).checkpoints;
  }

  /** Restores the workspace to a checkpoint; "begin" is the initial state. */
  async restore(checkpoint: string, options: { stop?: boolean } = {}): Promise<void> {
    await this.client.request("restoreCheckpoint", { path: this.path, body: { checkpoint, ...options } });
  }

  /** Creates a second sandbox with the same files. */
  async fork(options: Operations["forkSandbox"]["body"] = {}): Promise<Sandbox> {
    return new Sandbox(this.client, await this.client.request("forkSandbox", { path: this.path, body: options }), false);
  }

  /** The changes since a checkpoint, or since the initial state. patch: include the content, in git's format. */
  async diff(options: Operations["getDiff"]["query"] = {}): Promise<Diff> {
    const diff = await this.client.request("getDiff", { path: this.path, query: options });
    const changes = diff.changes.map((one) => decodePath(decodePath(decodePath(one, "path"), "old_path"), "patch"));
    return { ...diff, changes };
  }

  /** Writes changes to the host directory, as one transaction: first with dry_run, then with its digest as `expect`. */
  async commit(options: CommitOptions = {}): Promise<Commit> {
    const { paths, ours, theirs, merge, ...rest } = options;
    const body = { ...rest, ...encodePaths({ paths, ours, theirs, merge }) };
    const commit = decodePath(await this.client.request("commitChanges", { path: this.path, body }), "kept");
    const decode = <Item extends object>(list: Item[] = []): Item[] => list.map((one) => decodePath(one, "path"));
    return {
      ...commit,
      applied: decode(commit.applied),
      conflicts: decode(commit.conflicts),
      held: decode(commit.held),
      skipped: decode(commit.skipped),
    };
  }

  /** Publishes a port of the sandbox on the server's loopback interface, and as a preview for browsers. */
  expose(port: number): Promise<Port> {
    return this.client.request("publishPort", { path: this.path, body: { port } });
  }

  async unexpose(port: number): Promise<void> {
    await this.client.request("closePort", { path: { id: this.id, port: String(port) } });
  }

  /** Published ports. */
  async ports(): Promise<Port[]> {
    return (await this.client.request("listPorts", { path: this.path })).ports;
  }
}
