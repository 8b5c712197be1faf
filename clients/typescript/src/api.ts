// Made from the server's OpenAPI document by scripts/generate_types.mjs.

export interface Problem {
  type: string;
  title: string;
  status: number;
  /** For programs. */
  code: string;
  /** For people. */
  reason: string;
  /** What to do about it. */
  try?: string | undefined;
  approvals?: Approval[] | undefined;
}

export interface Sandbox {
  id: string;
  name: string;
  labels: Record<string, string>;
  state: "running" | "stopped" | "expired" | "damaged";
  created: number;
  expires_in: number;
  sandbox_timeout?: number | undefined;
  command_timeout?: number | undefined;
  workspace?: string | undefined;
  profile?: string | undefined;
  template?: string | undefined;
  network?: "none" | "proxy" | "host" | undefined;
  allowed_hosts?: string[] | undefined;
  policy?: Record<string, unknown> | undefined;
  problem?: string | undefined;
}

export interface SandboxList {
  sandboxes: Sandbox[];
  next_cursor?: string | null | undefined;
}

export interface Usage {
  wall_ms?: number | undefined;
  user_cpu_ms?: number | undefined;
  system_cpu_ms?: number | undefined;
  peak_memory_bytes?: number | undefined;
  read_bytes?: number | undefined;
  written_bytes?: number | undefined;
  processes_peak?: number | null | undefined;
  network_bytes?: number | undefined;
  network_connections?: number | undefined;
  network_denied?: number | undefined;
}

export interface Command {
  id: string;
  args: string[];
  started: number;
  running: boolean;
  stdout_bytes?: number | undefined;
  stderr_bytes?: number | undefined;
  stdout_dropped_bytes?: number | undefined;
  stderr_dropped_bytes?: number | undefined;
  outcome?: "exited" | "signaled" | "limit" | "denied" | "setup_failed" | "cancelled" | undefined;
  exit_code?: number | null | undefined;
  signal?: number | null | undefined;
  limit?: string | null | undefined;
  duration_ms?: number | undefined;
  usage?: Usage | undefined;
}

export interface CommandList {
  commands: Command[];
}

export interface RunResult {
  version: number;
  sandbox_id: string;
  outcome: "exited" | "signaled" | "limit" | "denied" | "setup_failed" | "cancelled";
  exit_code: number | null;
  signal: number | string | null;
  /** The limit that ended it: time, cpu, memory, processes, disk, file_size, output. */
  limit: string | null;
  stdout: string;
  stderr: string;
  stdout_encoding?: "utf-8" | "base64" | undefined;
  stderr_encoding?: "utf-8" | "base64" | undefined;
  truncated?: Record<string, unknown> | undefined;
  duration_ms?: number | undefined;
  usage?: Usage | undefined;
  denials?: Array<Record<string, unknown>> | undefined;
  violations?: Array<Record<string, unknown>> | undefined;
  layers?: Record<string, unknown> | undefined;
  warnings?: string[] | undefined;
  error?: Record<string, unknown> | undefined;
}

export type CommandResult = RunResult | Command;

export interface File {
  name: string;
  name_encoding?: string | undefined;
  type: string;
  size: number;
  mode?: number | undefined;
  modified?: number | undefined;
}

export interface FileList {
  files: File[];
}

export interface FileWritten {
  size: number;
}

export interface Checkpoint {
  name: string;
  created: number;
}

export interface CheckpointList {
  checkpoints: Checkpoint[];
}

export interface Change {
  path: string;
  old_path?: string | undefined;
  kind: "added" | "modified" | "deleted";
  type: string;
  size?: number | undefined;
  binary?: boolean | undefined;
  added_lines?: number | undefined;
  removed_lines?: number | undefined;
  patch?: string | undefined;
  omitted?: string | undefined;
}

export interface Diff {
  changes: Change[];
  truncated: boolean;
}

export interface Commit {
  digest: string;
  applied: Array<Record<string, unknown>>;
  bytes?: number | undefined;
  conflicts?: Array<Record<string, unknown>> | undefined;
  held?: Array<Record<string, unknown>> | undefined;
  skipped?: Array<Record<string, unknown>> | undefined;
  kept?: string[] | undefined;
  consistent?: boolean | undefined;
}

export interface Port {
  port: number;
  host_port: number;
  preview_url?: string | undefined;
}

export interface PortList {
  ports: Port[];
}

export interface Network {
  mode: string;
  allowed_hosts: string[];
}

export interface CredentialList {
  credentials: Array<Record<string, unknown>>;
}

export interface Approval {
  id: string;
  what: string;
  meaning?: string | undefined;
  sandbox_id?: string | undefined;
  caller?: string | undefined;
  asked?: number | undefined;
  state: "pending" | "allowed" | "denied";
}

export interface ApprovalList {
  approvals: Approval[];
}

export interface PolicyList {
  profiles: Array<Record<string, unknown>>;
  default?: string | undefined;
}

export interface Policy {
  name: string;
  policy: Record<string, unknown>;
  explanation?: string | undefined;
}

export interface PolicyCheck {
  valid: boolean;
  errors: Array<Record<string, unknown>>;
  widenings?: Array<Record<string, unknown>> | undefined;
  explanation?: string | undefined;
}

export interface AuditList {
  records: Array<Record<string, unknown>>;
}

export interface Stats {
  sandboxes?: number | undefined;
  pools?: Record<string, unknown> | undefined;
  events?: Record<string, unknown> | undefined;
  read_bytes?: number | undefined;
  written_bytes?: number | undefined;
  network_bytes?: number | undefined;
  version?: string | undefined;
}

export interface TemplateList {
  templates: Array<Record<string, unknown>>;
}

export interface ImageList {
  images: Array<Record<string, unknown>>;
}

export interface Caller {
  id: string;
  name: string;
  owner: boolean;
  scopes: string;
}

export interface Status {
  status: string;
}

export type Document = Record<string, unknown>;

export interface CreateSandboxBody {
  /** A name for people. */
  name?: string | undefined;
  /** Labels to find it by; at most 64. */
  labels?: Record<string, string> | undefined;
  /** A template of the server's configuration. Other fields must not be given with it, except name,  */
  template?: string | undefined;
  /** A built-in profile; dev by default. */
  profile?: string | undefined;
  /** A policy document, instead of a profile. */
  policy?: Record<string, unknown> | undefined;
  /** Start from a checkpoint of another sandbox: ID or ID:CHECKPOINT. */
  checkpoint?: string | undefined;
  /** A host directory that the server allows (--allow-workspace). Changes stay in the sandbox until  */
  workspace?: string | undefined;
  /** Memory limit, for example 512M. */
  memory?: string | undefined;
  /** Limit of what the sandbox can write, for example 1G. */
  disk?: string | undefined;
  /** Share of CPUs. */
  cpus?: number | undefined;
  /** Variables of every command. */
  environment?: Record<string, string> | undefined;
  /** Hosts that the sandbox may reach. A token needs the owner's approval of each. */
  allowed_hosts?: string[] | undefined;
  /** Seconds after which a command is killed, unless it names another; 120 by default. */
  command_timeout?: number | undefined;
  /** Seconds without a request after which the sandbox ends; 3600 by default. */
  sandbox_timeout?: number | undefined;
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

export interface ExtendSandboxBody {
  /** Seconds from now; every later request restarts them. */
  sandbox_timeout: number;
}

export interface RunCommandBody {
  /** A shell command line (sh -c). Either this or args. */
  command?: string | undefined;
  /** A program and its arguments, run without a shell. */
  args?: string[] | undefined;
  /** Directory to run in; the workspace by default. */
  cwd?: string | undefined;
  /** Additional variables. */
  environment?: Record<string, string> | undefined;
  /** Standard input. */
  stdin?: string | undefined;
  /** utf-8 or base64. */
  stdin_encoding?: "utf-8" | "base64" | undefined;
  /** Seconds after which the command is killed. Default: the sandbox's; none in the background. */
  command_timeout?: number | undefined;
  /** Seconds after which the response is sent even if the command still runs (202). */
  request_timeout?: number | undefined;
  /** wait (default): respond with the result. background: respond at once. stream: respond with  */
  mode?: "wait" | "background" | "stream" | undefined;
  /** In the background: leave standard input open. */
  keep_stdin?: boolean | undefined;
  /** Bytes of each stream in the result of mode wait. */
  output_limit?: number | undefined;
}

export interface StreamOutputQuery {
  /** Begin at this byte of standard output. */
  stdout_offset?: number | undefined;
  /** Begin at this byte of standard error. */
  stderr_offset?: number | undefined;
  /** Wait for more until the command ends (default). */
  follow?: boolean | undefined;
}

export interface WriteStdinBody {
  /** What the command gets. */
  data?: string | undefined;
  /** utf-8 or base64. */
  encoding?: "utf-8" | "base64" | undefined;
  /** Close standard input afterwards. */
  close?: boolean | undefined;
}

export interface SendSignalBody {
  /** For example TERM, INT or KILL, or a number. */
  signal: string;
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

export interface ListFilesQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
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

export interface RemoveFileQuery {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
  /** Remove a directory with everything in it. */
  recursive?: boolean | undefined;
}

export interface StatFileQuery {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
}

export interface MoveFileBody {
  /** The present path. */
  from: string;
  /** The new path. */
  to: string;
  /** Replace what is there. */
  replace?: boolean | undefined;
}

export interface MakeDirectoryBody {
  /** Relative to the workspace, or absolute inside it. */
  path: string;
}

export interface WatchFilesQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
}

export interface ReadArchiveQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
}

export interface WriteArchiveQuery {
  /** A directory; the workspace by default. */
  path?: string | undefined;
}

export interface CreateCheckpointBody {
  /** Generated if it is not given. */
  name?: string | undefined;
  /** Kill running processes first; else 409 if there are any. */
  stop?: boolean | undefined;
}

export interface RestoreCheckpointBody {
  /** Its name; begin: the state in which the sandbox began. */
  checkpoint: string;
  /** Kill running processes first; else 409 if there are any. */
  stop?: boolean | undefined;
}

export interface ForkSandboxBody {
  /** A name for people. */
  name?: string | undefined;
  /** As for a new sandbox. */
  sandbox_timeout?: number | undefined;
  /** Kill running processes first; else 409 if there are any. */
  stop?: boolean | undefined;
}

export interface GetDiffQuery {
  /** Compare with this one; with the beginning by default. */
  checkpoint?: string | undefined;
  /** With the content, in git's format. */
  patch?: boolean | undefined;
  /** At most so many paths; 1000 by default. */
  limit?: number | undefined;
}

export interface CommitChangesBody {
  /** Only these, or what is below them. Files that the host would execute only by their own path. */
  paths?: string[] | undefined;
  /** Change nothing; the result has the digest. */
  dry_run?: boolean | undefined;
  /** Digest of a dry run: commit exactly that, or nothing. Required unless dry_run. */
  expect?: string | undefined;
  /** Kill running processes first. */
  stop?: boolean | undefined;
  /** Conflicts in which the real file stays. */
  ours?: string[] | undefined;
  /** Conflicts in which the sandbox's file wins. */
  theirs?: string[] | undefined;
  /** Conflicts to merge line by line. */
  merge?: string[] | undefined;
}

export interface PublishPortBody {
  /** The port in the sandbox. */
  port: number;
}

export interface ChangeNetworkBody {
  /** allow or deny a host from now on, or remove it from the allowed ones. */
  action: "allow" | "deny" | "remove";
  /** A host pattern, with or without :PORT. */
  host: string;
  /** Kill running processes if the sandbox must restart for its first host. */
  stop?: boolean | undefined;
}

export interface AnswerApprovalBody {
  /** allow or deny. */
  decision: "allow" | "deny";
  /** How long the approval holds; a day by default. */
  seconds?: number | undefined;
}

export interface CheckPolicyBody {
  /** A policy document. */
  policy: Record<string, unknown>;
}

export interface QueryAuditQuery {
  /** Only records about this sandbox. */
  sandbox?: string | undefined;
  /** Only this type of event. */
  event?: string | undefined;
  /** Only records after this number. */
  after?: number | undefined;
  /** The newest so many; 100 by default. */
  limit?: number | undefined;
}

export interface StreamEventsQuery {
  /** Begin after this event; Last-Event-ID does the same. */
  after?: number | undefined;
}

/** Input and result of each operation. */
export interface Operations {
  /** Create a sandbox and start it */
  createSandbox: { result: Sandbox; body: CreateSandboxBody };
  /** List the caller's sandboxes, oldest first */
  listSandboxes: { result: SandboxList; query: ListSandboxesQuery };
  /** One sandbox, with its policy */
  getSandbox: { result: Sandbox; path: { id: string } };
  /** Kill everything in the sandbox and remove its files */
  destroySandbox: { result: undefined; path: { id: string } };
  /** Set the sandbox's time to live */
  extendSandbox: { result: Sandbox; path: { id: string }; body: ExtendSandboxBody };
  /** Run a command */
  runCommand: { result: CommandResult; path: { id: string }; body: RunCommandBody };
  /** List commands of modes background and stream */
  listCommands: { result: CommandList; path: { id: string } };
  /** The state of one command */
  getCommand: { result: Command; path: { id: string; command: string } };
  /** Kill a command and everything it started */
  stopCommand: { result: undefined; path: { id: string; command: string } };
  /** Output as server-sent events, from any offset on */
  streamOutput: { result: undefined; path: { id: string; command: string }; query: StreamOutputQuery };
  /** Write to standard input */
  writeStdin: { result: undefined; path: { id: string; command: string }; body: WriteStdinBody };
  /** Send a signal */
  sendSignal: { result: undefined; path: { id: string; command: string }; body: SendSignalBody };
  /** A terminal as a WebSocket: binary messages are its bytes, text messages resize it */
  openTerminal: { result: undefined; path: { id: string }; query: OpenTerminalQuery };
  /** List a directory */
  listFiles: { result: FileList; path: { id: string }; query: ListFilesQuery };
  /** Read a file, or a range of it */
  readFile: { result: undefined; path: { id: string }; query: ReadFileQuery };
  /** Create or replace a file, atomically */
  writeFile: { result: FileWritten; path: { id: string }; query: WriteFileQuery };
  /** Remove a file or directory */
  removeFile: { result: undefined; path: { id: string }; query: RemoveFileQuery };
  /** Type, size, mode and time of a file */
  statFile: { result: File; path: { id: string }; query: StatFileQuery };
  /** Rename a file or directory */
  moveFile: { result: undefined; path: { id: string }; body: MoveFileBody };
  /** Create a directory and its parents */
  makeDirectory: { result: undefined; path: { id: string }; body: MakeDirectoryBody };
  /** Changes below a directory, as server-sent events */
  watchFiles: { result: undefined; path: { id: string }; query: WatchFilesQuery };
  /** A directory as a tar archive */
  readArchive: { result: undefined; path: { id: string }; query: ReadArchiveQuery };
  /** Unpack a tar archive into a directory */
  writeArchive: { result: undefined; path: { id: string }; query: WriteArchiveQuery };
  /** Freeze the workspace under a name */
  createCheckpoint: { result: Checkpoint; path: { id: string }; body: CreateCheckpointBody };
  /** List checkpoints, oldest first */
  listCheckpoints: { result: CheckpointList; path: { id: string } };
  /** Return the workspace to a checkpoint */
  restoreCheckpoint: { result: undefined; path: { id: string }; body: RestoreCheckpointBody };
  /** Create a second sandbox with the same files */
  forkSandbox: { result: Sandbox; path: { id: string }; body: ForkSandboxBody };
  /** What changed */
  getDiff: { result: Diff; path: { id: string }; query: GetDiffQuery };
  /** Write changes to the host directory, as one transaction */
  commitChanges: { result: Commit; path: { id: string }; body: CommitChangesBody };
  /** Published ports */
  listPorts: { result: PortList; path: { id: string } };
  /** Publish a port of the sandbox on the host's loopback interface */
  publishPort: { result: Port; path: { id: string }; body: PublishPortBody };
  /** Stop publishing a port */
  closePort: { result: undefined; path: { id: string; port: string } };
  /** Network mode and allowed hosts */
  getNetwork: { result: Network; path: { id: string } };
  /** Allow, deny or remove a host */
  changeNetwork: { result: Network; path: { id: string }; body: ChangeNetworkBody };
  /** Credentials that the broker adds to requests, without their values */
  listCredentials: { result: CredentialList; path: { id: string } };
  /** Requests that wait for the owner: all for the owner, else the caller's */
  listApprovals: { result: ApprovalList };
  /** One request */
  getApproval: { result: Approval; path: { approval: string } };
  /** Allow or deny it; only the owner may */
  answerApproval: { result: Approval; path: { approval: string }; body: AnswerApprovalBody };
  /** The built-in profiles */
  listPolicies: { result: PolicyList };
  /** A profile, as a document and explained */
  getPolicy: { result: Policy; path: { profile: string } };
  /** Check and explain a policy document */
  checkPolicy: { result: PolicyCheck; body: CheckPolicyBody };
  /** Records of the audit log: about the caller's sandboxes, or all for admins */
  queryAudit: { result: AuditList; query: QueryAuditQuery };
  /** New records, as server-sent events */
  streamAudit: { result: undefined };
  /** Lifecycle events, as server-sent events */
  streamEvents: { result: undefined; query: StreamEventsQuery };
  /** Figures of this server */
  getStats: { result: Stats };
  /** Templates and their pools */
  listTemplates: { result: TemplateList };
  /** Images that sandboxes can start from */
  listImages: { result: ImageList };
  /** The caller */
  whoAmI: { result: Caller };
  /** This document */
  getOpenApi: { result: Document };
  /** Whether the server runs */
  getHealth: { result: Status };
  /** Whether the server can create sandboxes */
  getReadiness: { result: Status };
  /** Figures for Prometheus */
  getMetrics: { result: undefined };
}

/** Method and path of each operation. */
export const routes: { readonly [Id in keyof Operations]: readonly [method: string, path: string] } = {
  createSandbox: ["POST", "/v1/sandboxes"],
  listSandboxes: ["GET", "/v1/sandboxes"],
  getSandbox: ["GET", "/v1/sandboxes/{id}"],
  destroySandbox: ["DELETE", "/v1/sandboxes/{id}"],
  extendSandbox: ["POST", "/v1/sandboxes/{id}/extend"],
  runCommand: ["POST", "/v1/sandboxes/{id}/commands"],
  listCommands: ["GET", "/v1/sandboxes/{id}/commands"],
  getCommand: ["GET", "/v1/sandboxes/{id}/commands/{command}"],
  stopCommand: ["DELETE", "/v1/sandboxes/{id}/commands/{command}"],
  streamOutput: ["GET", "/v1/sandboxes/{id}/commands/{command}/output"],
  writeStdin: ["POST", "/v1/sandboxes/{id}/commands/{command}/stdin"],
  sendSignal: ["POST", "/v1/sandboxes/{id}/commands/{command}/signal"],
  openTerminal: ["GET", "/v1/sandboxes/{id}/pty"],
  listFiles: ["GET", "/v1/sandboxes/{id}/files"],
  readFile: ["GET", "/v1/sandboxes/{id}/files/content"],
  writeFile: ["PUT", "/v1/sandboxes/{id}/files/content"],
  removeFile: ["DELETE", "/v1/sandboxes/{id}/files/content"],
  statFile: ["GET", "/v1/sandboxes/{id}/files/stat"],
  moveFile: ["POST", "/v1/sandboxes/{id}/files/move"],
  makeDirectory: ["POST", "/v1/sandboxes/{id}/files/mkdir"],
  watchFiles: ["GET", "/v1/sandboxes/{id}/files/watch"],
  readArchive: ["GET", "/v1/sandboxes/{id}/files/archive"],
  writeArchive: ["PUT", "/v1/sandboxes/{id}/files/archive"],
  createCheckpoint: ["POST", "/v1/sandboxes/{id}/checkpoints"],
  listCheckpoints: ["GET", "/v1/sandboxes/{id}/checkpoints"],
  restoreCheckpoint: ["POST", "/v1/sandboxes/{id}/restore"],
  forkSandbox: ["POST", "/v1/sandboxes/{id}/fork"],
  getDiff: ["GET", "/v1/sandboxes/{id}/diff"],
  commitChanges: ["POST", "/v1/sandboxes/{id}/commit"],
  listPorts: ["GET", "/v1/sandboxes/{id}/ports"],
  publishPort: ["POST", "/v1/sandboxes/{id}/ports"],
  closePort: ["DELETE", "/v1/sandboxes/{id}/ports/{port}"],
  getNetwork: ["GET", "/v1/sandboxes/{id}/network"],
  changeNetwork: ["POST", "/v1/sandboxes/{id}/network"],
  listCredentials: ["GET", "/v1/sandboxes/{id}/credentials"],
  listApprovals: ["GET", "/v1/approvals"],
  getApproval: ["GET", "/v1/approvals/{approval}"],
  answerApproval: ["POST", "/v1/approvals/{approval}"],
  listPolicies: ["GET", "/v1/policies"],
  getPolicy: ["GET", "/v1/policies/{profile}"],
  checkPolicy: ["POST", "/v1/policies/check"],
  queryAudit: ["GET", "/v1/audit"],
  streamAudit: ["GET", "/v1/audit/stream"],
  streamEvents: ["GET", "/v1/events"],
  getStats: ["GET", "/v1/stats"],
  listTemplates: ["GET", "/v1/templates"],
  listImages: ["GET", "/v1/images"],
  whoAmI: ["GET", "/v1/whoami"],
  getOpenApi: ["GET", "/v1/openapi.json"],
  getHealth: ["GET", "/healthz"],
  getReadiness: ["GET", "/readyz"],
  getMetrics: ["GET", "/metrics"],
};
