// Names of the server's types for users of this package, and types that the OpenAPI document does not have.
import type * as api from "./api.js";

export type { Approval, ApprovalChange, Caller, Checkpoint, Operations, Policy, PolicyCheck, Port } from "./api.js";
export type SandboxInfo = api.Sandbox;
export type SandboxList = api.SandboxList;
export type CommandInfo = api.Command;
/** Bytes of `name` that are not UTF-8 are lone surrogates (U+DC80 to U+DCFF); the name is valid in every path argument. */
export type FileInfo = Omit<api.File, "name_encoding">;
/** Bytes of the paths and the patch that are not UTF-8 are lone surrogates, as in FileInfo. */
export type Change = Omit<api.Change, "path_encoding" | "old_path_encoding" | "patch_encoding">;
export type Diff = Omit<api.Diff, "changes"> & { changes: Change[] };
/** Bytes of the paths that are not UTF-8 are lone surrogates, as in FileInfo. */
export type Commit = Omit<api.Commit, "kept_encoding">;
export type NetworkInfo = api.Network;

/** The result of a command. */
export type RunResult = api.RunResult & {
  /** Bytes that are not UTF-8 are replaced; `stdout_raw` has them. */
  stdout: string;
  stderr: string;
  stdout_raw: Uint8Array;
  stderr_raw: Uint8Array;
  /** Whether the command exited with status 0. */
  ok: boolean;
};

export interface FileChange {
  /** created, modified or deleted */
  kind: string;
  /** As FileInfo.name. */
  path: string;
  type?: string;
  size?: number;
}

export interface AuditRecord {
  seq: number;
  time: string;
  event: string;
  severity: string;
  sandbox_id: string;
  data: Record<string, unknown>;
}

/** A lifecycle event. */
export interface Event {
  id: number;
  type: string;
  time: string;
  sandbox_id: string;
  data: Record<string, unknown>;
}
