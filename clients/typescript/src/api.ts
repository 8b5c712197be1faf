// Generated from the server's OpenAPI document by scripts/generate_types.mjs.

export interface Approval {
  asked?: number | undefined;
  caller?: string | undefined;
  /** What a commit writes: those with a caution first, then by path. At most 100 changes and about 16 KiB; events omit the list. */
  changes?: ApprovalChange[] | undefined;
  changes_not_listed?: number | undefined;
  changes_total?: number | undefined;
  /** How many the host may execute later, or are of an unusual kind. */
  changes_with_caution?: number | undefined;
  /** Of a commit: only this one is approved. */
  digest?: string | undefined;
  id: string;
  meaning?: string | undefined;
  sandbox_id?: string | undefined;
  state: "pending" | "allowed" | "denied";
  what: string;
}

export interface ApprovalChange {
  /** Why the host may execute it later, or that it is of an unusual kind. */
  caution?: string | undefined;
  /** The path has such characters. */
  escaped?: boolean | undefined;
  executable?: boolean | undefined;
  kind: "added" | "modified" | "deleted";
  /** Control characters and such that hide or reorder text are escaped. */
  path: string;
  replaces_directory?: boolean | undefined;
  size: number;
  /** Of a link, escaped like the path. */
  target?: string | undefined;
  type: string;
}

export interface ApprovalList {
  approvals: Approval[];
}

export interface AuditList {
  records: Array<Record<string, unknown>>;
}

export interface Caller {
  id: string;
  name: string;
  owner: boolean;
  scopes: string;
}

export interface Change {
  added_lines?: number | undefined;
  binary?: boolean | undefined;
  kind: "added" | "modified" | "deleted";
  old_path?: string | undefined;
  old_path_encoding?: string | undefined;
  omitted?: string | undefined;
  patch?: string | undefined;
  patch_encoding?: string | undefined;
  path: string;
  path_encoding?: string | undefined;
  removed_lines?: number | undefined;
  size?: number | undefined;
  type: string;
}

export interface Checkpoint {
  created: number;
  name: string;
}

export interface CheckpointList {
  checkpoints: Checkpoint[];
}

export interface Command {
  args: string[];
  /** In a list: only the first 4 KiB of the arguments are included. */
  args_truncated?: boolean | undefined;
  duration_ms?: number | undefined;
  exit_code?: number | null | undefined;
  id: string;
  limit?: string | null | undefined;
  outcome?: "exited" | "signaled" | "limit" | "denied" | "setup_failed" | "cancelled" | undefined;
  running: boolean;
  signal?: number | null | undefined;
  started: number;
  stderr_bytes?: number | undefined;
  stderr_dropped_bytes?: number | undefined;
  stdout_bytes?: number | undefined;
  stdout_dropped_bytes?: number | undefined;
  usage?: Usage | undefined;
}

export interface CommandList {
  commands: Command[];
  truncated?: boolean | undefined;
}

export type CommandResult = RunResult | Command;

export interface Commit {
  applied: Array<Record<string, unknown>>;
  /** How many did not fit into the list. The digest covers them. */
  applied_not_listed?: number | undefined;
  bytes?: number | undefined;
  conflicts?: Array<Record<string, unknown>> | undefined;
  conflicts_not_listed?: number | undefined;
  consistent?: boolean | undefined;
  digest: string;
  held?: Array<Record<string, unknown>> | undefined;
  held_not_listed?: number | undefined;
  kept?: string[] | undefined;
  kept_encoding?: string | undefined;
  kept_not_listed?: number | undefined;
  searched?: boolean | undefined;
  skipped?: Array<Record<string, unknown>> | undefined;
  skipped_not_listed?: number | undefined;
}

export interface CredentialList {
  credentials: Array<Record<string, unknown>>;
}

export interface Diff {
  changes: Change[];
  truncated: boolean;
}

export type Document = Record<string, unknown>;

export interface File {
  mode?: number | undefined;
  modified?: number | undefined;
  name: string;
  name_encoding?: string | undefined;
  size: number;
  type: string;
}

export interface FileList {
  files: File[];
  truncated?: boolean | undefined;
}

export interface FileWritten {
  size: number;
}

export interface ImageList {
  images: Array<Record<string, unknown>>;
}

export interface Network {
  allowed_hosts: string[];
  mode: string;
}

export interface Policy {
  explanation?: string | undefined;
  name: string;
  policy: Record<string, unknown>;
}

export interface PolicyCheck {
  errors: Array<Record<string, unknown>>;
  explanation?: string | undefined;
  valid: boolean;
  widenings?: Array<Record<string, unknown>> | undefined;
}

export interface PolicyList {
  default?: string | undefined;
  profiles: Array<Record<string, unknown>>;
}

export interface Port {
  host_port: number;
  port: number;
  preview_url?: string | undefined;
}

export interface PortList {
  ports: Port[];
}

export interface Problem {
  approvals?: Approval[] | undefined;
  /** For programs. */
  code: string;
  /** For people. */
  reason: string;
  status: number;
  title: string;
  /** What to do about it. */
  try?: string | undefined;
  type: string;
}

export interface RunResult {
  denials?: Array<Record<string, unknown>> | undefined;
  duration_ms?: number | undefined;
  error?: Record<string, unknown> | undefined;
  exit_code: number | null;
  layers?: Record<string, unknown> | undefined;
  /** The limit that ended it: time, cpu, memory, processes, disk, file_size, output. */
  limit: string | null;
  outcome: "exited" | "signaled" | "limit" | "denied" | "setup_failed" | "cancelled";
  sandbox_id: string;
  signal: number | string | null;
  stderr: string;
  stderr_encoding?: "utf-8" | "base64" | undefined;
  stdout: string;
  stdout_encoding?: "utf-8" | "base64" | undefined;
  truncated?: Record<string, unknown> | undefined;
  usage?: Usage | undefined;
  version: number;
  violations?: Array<Record<string, unknown>> | undefined;
  warnings?: string[] | undefined;
}

export interface Sandbox {
  allowed_hosts?: string[] | undefined;
  command_timeout?: number | undefined;
  created: number;
  expires_in: number;
  id: string;
  labels: Record<string, string>;
  name: string;
  network?: "none" | "proxy" | "host" | undefined;
  policy?: Record<string, unknown> | undefined;
  problem?: string | undefined;
  profile?: string | undefined;
  sandbox_timeout?: number | undefined;
  state: "running" | "stopped" | "expired" | "damaged";
  template?: string | undefined;
  workspace?: string | undefined;
}

export interface SandboxList {
  next_cursor?: string | null | undefined;
  sandboxes: Sandbox[];
}

export interface Stats {
  events?: Record<string, unknown> | undefined;
  network_bytes?: number | undefined;
  pools?: Record<string, unknown> | undefined;
  read_bytes?: number | undefined;
  sandboxes?: number | undefined;
  version?: string | undefined;
  written_bytes?: number | undefined;
}

export interface Status {
  status: string;
}

export interface TemplateList {
  templates: Array<Record<string, unknown>>;
}

export interface Usage {
  network_bytes?: number | undefined;
  network_connections?: number | undefined;
  network_denied?: number | undefined;
  peak_memory_bytes?: number | undefined;
  processes_peak?: number | null | undefined;
  read_bytes?: number | undefined;
  system_cpu_ms?: number | undefined;
  user_cpu_ms?: number | undefined;
  wall_ms?: number | undefined;
  written_bytes?: number | undefined;
}

export interface AnswerApprovalBody {
  /** allow or deny. */
  decision: "allow" | "deny";
  /** How long the approval holds; a day by default. */
  seconds?: number | undefined;
}

export interface QueryAuditQuery {
  /** Only records about this sandbox. */
  sandbox?: string | undefined;
  /** Only this type of event. */
  event?: string | undefined;
  /** Only records after this number. */
  after?: number | undefined;
  /** The newest so many, with at most 4 MiB of data; 100 by default. */
  limit?: number | undefined;
}

export interface StreamEventsQuery {
  /** Begin after this event; Last-Event-ID does the same. */
  after?: number | undefined;
}

export interface CheckPolicyBody {
  /** A policy document. */
  policy: Record<string, unknown>;
}

export interface ListSandboxesQuery {
  /** Only those with this label: NAME or NAME=VALUE. */
  label?: string | undefined;
  /** Only those of this name. */
  name?: string | undefined;
  /** At most so many; 100 by default. */
  limit?: number | undefined;
  /** next_cursor of the page before. */
  cursor?: string | undefined;
}

export interface CreateSandboxBody {
  /** Hosts that the sandbox may reach. A token needs the owner's approval of each. */
  allowed_hosts?: string[] | undefined;
  /** Start from a checkpoint of another sandbox: ID or ID:CHECKPOINT. */
  checkpoint?: string | undefined;
  /** Seconds after which a command is killed, unless it names another; 120 by default. */
  command_timeout?: number | undefined;
  /** Share of CPUs. */
  cpus?: number | undefined;
  /** Limit of what the sandbox can write, for example 1G. */
  disk?: string | undefined;
  /** Variables of every command. */
  environment?: Record<string, string> | undefined;
  /** An image of the server's store as root file system, for example debian:12. */
  image?: string | undefined;
  /** Labels to find it by: at most 64, names and values of at most 256 bytes. */
  labels?: Record<string, string> | undefined;
  /** Memory limit, for example 512M. */
  memory?: string | undefined;
  /** A name for people; at most 128 bytes. */
  name?: string | undefined;
  /** A policy document, instead of a profile. */
  policy?: Record<string, unknown> | undefined;
  /** A built-in profile; dev by default. */
  profile?: string | undefined;
  /** Seconds without a request after which the sandbox ends; 3600 by default. */
  sandbox_timeout?: number | undefined;
  /** A template of the server's configuration. Other fields must not be given with it, except name, labels and sandbox_timeout. */
  template?: string | undefined;
  /** A host directory that the server allows (--allow-workspace). Changes stay in the sandbox until they are committed. Default: an empty workspace. */
  workspace?: string | undefined;
}

export interface CreateCheckpointBody {
  /** Generated if it is not given. */
  name?: string | undefined;
  /** Kill running processes first; else 409 if there are any. */
  stop?: boolean | undefined;
}

export interface RunCommandBody {
  /** A program and its arguments, run without a shell. */
  args?: string[] | undefined;
  /** A shell command line (sh -c). Either this or args. */
  command?: string | undefined;
  /** Seconds after which the command is killed. Default: the sandbox's; none in the background. */
  command_timeout?: number | undefined;
  /** Directory to run in; the workspace by default. */
  cwd?: string | undefined;
  /** Additional variables. */
  environment?: Record<string, string> | undefined;
  /** In the background: leave standard input open. */
  keep_stdin?: boolean | undefined;
  /** wait (default): respond with the result. background: respond at once. stream: respond with server-sent events. */
  mode?: "wait" | "background" | "stream" | undefined;
  /** Bytes of each stream in the result of mode wait. */
  output_limit?: number | undefined;
  /** Seconds after which the response is sent even if the command still runs (202). */
  request_timeout?: number | undefined;
  /** Standard input. */
  stdin?: string | undefined;
  /** utf-8 or base64. */
  stdin_encoding?: "utf-8" | "base64" | undefined;
}

export interface StreamOutputQuery {
  /** Begin at this byte of standard output. */
  stdout_offset?: number | undefined;
  /** Begin at this byte of standard error. */
  stderr_offset?: number | undefined;
  /** Wait for more until the command ends (default). */
  follow?: boolean | undefined;
}

export interface SendSignalBody {
  /** For example TERM, INT or KILL, or a number. */
  signal: string;
}

export interface WriteStdinBody {
  /** Close standard input afterwards. */
  close?: boolean | undefined;
  /** What the command gets. */
  data?: string | undefined;
  /** utf-8 or base64. */
  encoding?: "utf-8" | "base64" | undefined;
}

export interface CommitChangesBody {
  /** Change nothing; the result has the digest. */
  dry_run?: boolean | undefined;
  /** Of the paths: utf-8 or base64. */
  encoding?: "utf-8" | "base64" | undefined;
  /** Digest of a dry run: commit exactly that, or nothing. Required unless dry_run. */
  expect?: string | undefined;
  /** Conflicts to merge line by line: files, or directories for all conflicts in them. */
  merge?: string[] | undefined;
  /** Conflicts in which the real file stays: files, or directories for all conflicts in them. */
  ours?: string[] | undefined;
  /** Only these, or what is below them. Files that the host would execute only by their own path. */
  paths?: string[] | undefined;
  /** Kill running processes first. */
  stop?: boolean | undefined;
  /** Conflicts in which the sandbox's file wins: files, or directories for all conflicts in them. */
  theirs?: string[] | undefined;
}

export interface GetDiffQuery {
  /** Compare with this one; with the beginning by default. */
  checkpoint?: string | undefined;
  /** With the content, in git's format. */
  patch?: boolean | undefined;
  /** At most so many paths; 1000 by default. */
  limit?: number | undefined;
}

export interface ExtendSandboxBody {
  /** Seconds from now; every later request restarts them. */
  sandbox_timeout: number;
}

export interface ListFilesQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
}

export interface ReadArchiveQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
  /** Seconds after which tar is killed; 3600 by default. */
  command_timeout?: number | undefined;
}

export interface WriteArchiveQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
}

export interface RemoveFileQuery {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
  /** Remove a directory with everything in it. */
  recursive?: boolean | undefined;
}

export interface ReadFileQuery {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
}

export interface WriteFileQuery {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
  /** Permission bits, in octal: 644. */
  mode?: string | undefined;
}

export interface MakeDirectoryBody {
  /** Of the paths: utf-8 or base64. */
  encoding?: "utf-8" | "base64" | undefined;
  /** Relative to the workspace, or absolute inside it. */
  path: string;
}

export interface MoveFileBody {
  /** Of the paths: utf-8 or base64. */
  encoding?: "utf-8" | "base64" | undefined;
  /** The present path. */
  from: string;
  /** Replace what is there. */
  replace?: boolean | undefined;
  /** The new path. */
  to: string;
}

export interface StatFileQuery {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
}

export interface WatchFilesQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
}

export interface ForkSandboxBody {
  /** A name for people; at most 128 bytes. */
  name?: string | undefined;
  /** As for a new sandbox. */
  sandbox_timeout?: number | undefined;
  /** Kill running processes first; else 409 if there are any. */
  stop?: boolean | undefined;
}

export interface ChangeNetworkBody {
  /** allow or deny a host from now on, or remove it from the allowed ones. */
  action: "allow" | "deny" | "remove";
  /** A host pattern, with or without :PORT. */
  host: string;
  /** Kill running processes if the sandbox must restart for its first host. */
  stop?: boolean | undefined;
}

export interface PublishPortBody {
  /** The port in the sandbox. */
  port: number;
}

export interface OpenTerminalQuery {
  /** A shell command line; a shell by default. */
  command?: string | undefined;
  /** Directory to run in. */
  cwd?: string | undefined;
  /** Height; 24 by default. */
  rows?: number | undefined;
  /** Width; 80 by default. */
  columns?: number | undefined;
  /** Seconds after which it is killed. */
  command_timeout?: number | undefined;
}

export interface RestoreCheckpointBody {
  /** Its name; begin: the state in which the sandbox began. */
  checkpoint: string;
  /** Kill running processes first; else 409 if there are any. */
  stop?: boolean | undefined;
}

/** Input and result of each operation. */
export interface Operations {
  /** Whether the server runs */
  getHealth: { result: Status };
  /** Figures for Prometheus */
  getMetrics: { result: undefined };
  /** Whether the server can create sandboxes */
  getReadiness: { result: Status };
  /** Requests that wait for the owner: all for the owner, else the caller's */
  listApprovals: { result: ApprovalList };
  /** One request */
  getApproval: { result: Approval; path: { approval: string } };
  /** Allow or deny it; only the owner may */
  answerApproval: { result: Approval; path: { approval: string }; body: AnswerApprovalBody };
  /** Records of the audit log about the caller's sandboxes; for admins about those of all tokens, and their requests */
  queryAudit: { result: AuditList; query: QueryAuditQuery };
  /** New records, as server-sent events */
  streamAudit: { result: undefined };
  /** Lifecycle events, as server-sent events */
  streamEvents: { result: undefined; query: StreamEventsQuery };
  /** Images that sandboxes can start from */
  listImages: { result: ImageList };
  /** This document */
  getOpenApi: { result: Document };
  /** The built-in profiles */
  listPolicies: { result: PolicyList };
  /** Check and explain a policy document */
  checkPolicy: { result: PolicyCheck; body: CheckPolicyBody };
  /** A profile, as a document and explained */
  getPolicy: { result: Policy; path: { profile: string } };
  /** List the caller's sandboxes, oldest first */
  listSandboxes: { result: SandboxList; query: ListSandboxesQuery };
  /** Create a sandbox and start it */
  createSandbox: { result: Sandbox; body: CreateSandboxBody };
  /** Kill everything in the sandbox and remove its files */
  destroySandbox: { result: undefined; path: { id: string } };
  /** One sandbox, with its policy */
  getSandbox: { result: Sandbox; path: { id: string } };
  /** List checkpoints, oldest first */
  listCheckpoints: { result: CheckpointList; path: { id: string } };
  /** Freeze the workspace under a name */
  createCheckpoint: { result: Checkpoint; path: { id: string }; body: CreateCheckpointBody };
  /** List commands of modes background and stream */
  listCommands: { result: CommandList; path: { id: string } };
  /** Run a command */
  runCommand: { result: CommandResult; path: { id: string }; body: RunCommandBody };
  /** Kill a command and everything it started */
  stopCommand: { result: undefined; path: { id: string; command: string } };
  /** The state of one command */
  getCommand: { result: Command; path: { id: string; command: string } };
  /** Output as server-sent events, from any offset on */
  streamOutput: { result: undefined; path: { id: string; command: string }; query: StreamOutputQuery };
  /** Send a signal */
  sendSignal: { result: undefined; path: { id: string; command: string }; body: SendSignalBody };
  /** Write to standard input */
  writeStdin: { result: undefined; path: { id: string; command: string }; body: WriteStdinBody };
  /** Write changes to the host directory, as one transaction */
  commitChanges: { result: Commit; path: { id: string }; body: CommitChangesBody };
  /** Credentials that the broker adds to requests, without their values */
  listCredentials: { result: CredentialList; path: { id: string } };
  /** What changed */
  getDiff: { result: Diff; path: { id: string }; query: GetDiffQuery };
  /** Set the sandbox's time to live */
  extendSandbox: { result: Sandbox; path: { id: string }; body: ExtendSandboxBody };
  /** List a directory */
  listFiles: { result: FileList; path: { id: string }; query: ListFilesQuery };
  /** A directory as a tar archive */
  readArchive: { result: undefined; path: { id: string }; query: ReadArchiveQuery };
  /** Unpack a tar archive into a directory */
  writeArchive: { result: undefined; path: { id: string }; query: WriteArchiveQuery };
  /** Remove a file or directory */
  removeFile: { result: undefined; path: { id: string }; query: RemoveFileQuery };
  /** Read a file, or a range of it */
  readFile: { result: undefined; path: { id: string }; query: ReadFileQuery };
  /** Create or replace a file, atomically */
  writeFile: { result: FileWritten; path: { id: string }; query: WriteFileQuery };
  /** Create a directory and its parents */
  makeDirectory: { result: undefined; path: { id: string }; body: MakeDirectoryBody };
  /** Rename a file or directory */
  moveFile: { result: undefined; path: { id: string }; body: MoveFileBody };
  /** Type, size, mode and time of a file */
  statFile: { result: File; path: { id: string }; query: StatFileQuery };
  /** Changes below a directory, as server-sent events */
  watchFiles: { result: undefined; path: { id: string }; query: WatchFilesQuery };
  /** Create a second sandbox with the same files */
  forkSandbox: { result: Sandbox; path: { id: string }; body: ForkSandboxBody };
  /** Network mode and allowed hosts */
  getNetwork: { result: Network; path: { id: string } };
  /** Allow, deny or remove a host */
  changeNetwork: { result: Network; path: { id: string }; body: ChangeNetworkBody };
  /** Published ports */
  listPorts: { result: PortList; path: { id: string } };
  /** Publish a port of the sandbox on the host's loopback interface */
  publishPort: { result: Port; path: { id: string }; body: PublishPortBody };
  /** Stop publishing a port */
  closePort: { result: undefined; path: { id: string; port: string } };
  /** A terminal as a WebSocket: binary messages are its bytes, text messages resize it */
  openTerminal: { result: undefined; path: { id: string }; query: OpenTerminalQuery };
  /** Return the workspace to a checkpoint */
  restoreCheckpoint: { result: undefined; path: { id: string }; body: RestoreCheckpointBody };
  /** Figures of this server */
  getStats: { result: Stats };
  /** Templates and their pools */
  listTemplates: { result: TemplateList };
  /** The caller */
  whoAmI: { result: Caller };
}

/** Method and path of each operation. */
export const routes: { readonly [Id in keyof Operations]: readonly [method: string, path: string] } = {
  getHealth: ["GET", "/healthz"],
  getMetrics: ["GET", "/metrics"],
  getReadiness: ["GET", "/readyz"],
  listApprovals: ["GET", "/v1/approvals"],
  getApproval: ["GET", "/v1/approvals/{approval}"],
  answerApproval: ["POST", "/v1/approvals/{approval}"],
  queryAudit: ["GET", "/v1/audit"],
  streamAudit: ["GET", "/v1/audit/stream"],
  streamEvents: ["GET", "/v1/events"],
  listImages: ["GET", "/v1/images"],
  getOpenApi: ["GET", "/v1/openapi.json"],
  listPolicies: ["GET", "/v1/policies"],
  checkPolicy: ["POST", "/v1/policies/check"],
  getPolicy: ["GET", "/v1/policies/{profile}"],
  listSandboxes: ["GET", "/v1/sandboxes"],
  createSandbox: ["POST", "/v1/sandboxes"],
  destroySandbox: ["DELETE", "/v1/sandboxes/{id}"],
  getSandbox: ["GET", "/v1/sandboxes/{id}"],
  listCheckpoints: ["GET", "/v1/sandboxes/{id}/checkpoints"],
  createCheckpoint: ["POST", "/v1/sandboxes/{id}/checkpoints"],
  listCommands: ["GET", "/v1/sandboxes/{id}/commands"],
  runCommand: ["POST", "/v1/sandboxes/{id}/commands"],
  stopCommand: ["DELETE", "/v1/sandboxes/{id}/commands/{command}"],
  getCommand: ["GET", "/v1/sandboxes/{id}/commands/{command}"],
  streamOutput: ["GET", "/v1/sandboxes/{id}/commands/{command}/output"],
  sendSignal: ["POST", "/v1/sandboxes/{id}/commands/{command}/signal"],
  writeStdin: ["POST", "/v1/sandboxes/{id}/commands/{command}/stdin"],
  commitChanges: ["POST", "/v1/sandboxes/{id}/commit"],
  listCredentials: ["GET", "/v1/sandboxes/{id}/credentials"],
  getDiff: ["GET", "/v1/sandboxes/{id}/diff"],
  extendSandbox: ["POST", "/v1/sandboxes/{id}/extend"],
  listFiles: ["GET", "/v1/sandboxes/{id}/files"],
  readArchive: ["GET", "/v1/sandboxes/{id}/files/archive"],
  writeArchive: ["PUT", "/v1/sandboxes/{id}/files/archive"],
  removeFile: ["DELETE", "/v1/sandboxes/{id}/files/content"],
  readFile: ["GET", "/v1/sandboxes/{id}/files/content"],
  writeFile: ["PUT", "/v1/sandboxes/{id}/files/content"],
  makeDirectory: ["POST", "/v1/sandboxes/{id}/files/mkdir"],
  moveFile: ["POST", "/v1/sandboxes/{id}/files/move"],
  statFile: ["GET", "/v1/sandboxes/{id}/files/stat"],
  watchFiles: ["GET", "/v1/sandboxes/{id}/files/watch"],
  forkSandbox: ["POST", "/v1/sandboxes/{id}/fork"],
  getNetwork: ["GET", "/v1/sandboxes/{id}/network"],
  changeNetwork: ["POST", "/v1/sandboxes/{id}/network"],
  listPorts: ["GET", "/v1/sandboxes/{id}/ports"],
  publishPort: ["POST", "/v1/sandboxes/{id}/ports"],
  closePort: ["DELETE", "/v1/sandboxes/{id}/ports/{port}"],
  openTerminal: ["GET", "/v1/sandboxes/{id}/pty"],
  restoreCheckpoint: ["POST", "/v1/sandboxes/{id}/restore"],
  getStats: ["GET", "/v1/stats"],
  listTemplates: ["GET", "/v1/templates"],
  whoAmI: ["GET", "/v1/whoami"],
};
