// Errors, by what the caller can do.
import type { Approval, Problem } from "./api.js";

/** Base class of all errors of this package. */
export class CaissonError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No server at the address, or the connection broke. */
export class ConnectionFailedError extends CaissonError {}

/** The server sent nothing for `request_timeout` seconds. The server may have executed the request. */
export class RequestTimeoutError extends CaissonError {}

/** The response is not from a caisson server. */
export class ProtocolError extends CaissonError {}

/** The server ended a stream with an error event. */
export class StreamError extends CaissonError {}

/** The server rejected a request or could not execute it: a problem document (RFC 9457). */
export class ApiError extends CaissonError {
  /** A stable name of the error, for decisions in programs. */
  readonly code: string;
  /** The reason, for people. */
  readonly reason: string;
  /** How to fix it; empty if there is no advice. */
  readonly try: string;

  constructor(
    readonly status: number,
    /** The whole document. */
    readonly problem: Problem,
  ) {
    super(`${problem.reason} (${problem.code})${problem.try ? `: ${problem.try}` : ""}`);
    this.code = problem.code;
    this.reason = problem.reason;
    this.try = problem.try ?? "";
  }
}

/** 400, 405, 413, 415, 416, 421, 426, 431: invalid request. */
export class InvalidRequestError extends ApiError {}

/** 401: no token, or an unknown or expired one. */
export class UnauthorizedError extends ApiError {}

/** 403: the caller may not do this, or the path leads out of the sandbox. */
export class ForbiddenError extends ApiError {}

/** 403: the owner must approve the request first. Repeat it after that. */
export class ApprovalRequiredError extends ForbiddenError {
  /** The approval requests that wait for the owner. */
  get approvals(): Approval[] {
    return this.problem.approvals ?? [];
  }
}

/** 404: no such sandbox, command, file or port, or it belongs to another caller. */
export class NotFoundError extends ApiError {}

/** 409: the current state does not allow the request. */
export class ConflictError extends ApiError {}

/** 429: the token's rate or another quota is used up. */
export class TooManyRequestsError extends ApiError {}

/** 507: the sandbox or the host has no space left. */
export class DiskFullError extends ApiError {}

/** Other 5xx: the server cannot execute the request, or not now. */
export class UnavailableError extends ApiError {}

const byStatus: Record<number, typeof ApiError> = {
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  429: TooManyRequestsError,
  507: DiskFullError,
};

/** The error for a response with this status. */
export function errorOf(status: number, body: string): ApiError {
  let problem: Problem = { type: "about:blank", title: "", status, code: "unknown", reason: `HTTP status ${status}` };
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) problem = { ...problem, ...value };
  } catch {
    // Not a problem document: use only the status.
  }
  const approval = status === 403 && problem.code === "approval_required";
  const kind = approval ? ApprovalRequiredError : (byStatus[status] ?? (status >= 500 ? UnavailableError : InvalidRequestError));
  return new kind(status, problem);
}
