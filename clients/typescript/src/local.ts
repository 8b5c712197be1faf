// Starts the user's own server if it does not run.
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdir, open, readFile, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { stateHome } from "./endpoint.js";
import { ConnectionFailedError } from "./errors.js";

const pauseMs = 20;
const graceMs = 1000;

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns `caisson` in PATH, else the program of the npm package `caisson`, if that is installed with this client. */
export function findProgram(): string {
  if ((process.env["PATH"] ?? "").split(":").some((directory) => isProgram(join(directory, "caisson")))) return "caisson";
  try {
    const main = createRequire(import.meta.url).resolve("caisson/package.json");
    const platform = createRequire(main).resolve(`caisson-linux-${process.arch}/package.json`);
    return join(dirname(platform), "bin", "caisson");
  } catch {
    return "caisson";
  }
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    const finish = (served: boolean) => {
      probe.destroy();
      resolve(served);
    };
    probe.setTimeout(1000, () => finish(false));
    probe.once("connect", () => finish(true));
    probe.once("error", () => finish(false));
  });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Whether the process that created the lock file has exited, or has held it for too long. */
async function isStale(lock: string, holdMs: number): Promise<boolean> {
  try {
    const pid = Number(await readFile(lock, "utf8"));
    const age = Date.now() - (await stat(lock)).mtimeMs;
    // A file without a pid is being written.
    return age > holdMs || (pid > 0 && !isRunning(pid));
  } catch {
    return false;  // released meanwhile
  }
}

/**
 * Creates the lock file; returns false if the server accepts connections before that. Node has no flock. If two clients
 * take over the same stale lock at once, both start a server, and the second one exits because the socket is in use.
 */
async function takeLock(lock: string, socket: string, deadline: number, holdMs: number): Promise<boolean> {
  for (;;) {
    try {
      const file = await open(lock, "wx", 0o600);
      await file.writeFile(String(process.pid)).finally(() => file.close());
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (await isServed(socket)) return false;
    if (await isStale(lock, holdMs)) await rm(lock, { force: true });
    if (Date.now() > deadline) throw new ConnectionFailedError("another client is starting the server, but it does not respond");
    await sleep(pauseMs);
  }
}

/** Starts `caisson serve` on the socket unless another client does. Returns when it accepts connections. */
export async function startServer(program: string, socket: string, timeoutSeconds: number): Promise<void> {
  const deadline = Date.now() + timeoutSeconds * 1000;
  const directory = join(stateHome(), "server");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await mkdir(dirname(socket), { recursive: true, mode: 0o700 });
  const lock = join(directory, "serve.starting");
  if (!(await takeLock(lock, socket, deadline, timeoutSeconds * 1000))) return;
  try {
    if (!(await isServed(socket))) await spawnServer(program, socket, join(directory, "serve.log"), deadline);
  } finally {
    await rm(lock, { force: true });
  }
}

async function spawnServer(program: string, socket: string, log: string, until: number): Promise<void> {
  let deadline = until;
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  let failure = "";
  let running = true;
  try {
    // Detached: the server and its sandboxes outlive this process.
    const child = spawn(program, ["serve", "--socket", socket, "--listen", "none"], {
      detached: true,
      stdio: ["ignore", file.fd, file.fd],
    });
    child.once("error", (error) => {
      failure = `cannot start "${program}": ${error.message}; install caisson, add it to PATH or set CAISSON_PROGRAM`;
    });
    child.once("exit", () => {
      // Another client may have started a server that has the socket but does not accept connections yet.
      running = false;
      deadline = Math.min(deadline, Date.now() + graceMs);
    });
    child.unref();
    while (!(await isServed(socket))) {
      if (failure) throw new ConnectionFailedError(failure);
      if (Date.now() > deadline) {
        const text = (await readFile(log, "utf8").catch(() => "")).slice(-500).trim();
        const what = running ? "does not respond" : "exited";
        throw new ConnectionFailedError(`the server on unix:${socket} ${what}: ${text || "no message"}`);
      }
      await sleep(pauseMs);
    }
  } finally {
    await file.close();
  }
}
