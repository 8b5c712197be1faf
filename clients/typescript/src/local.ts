// Starts the user's own server when there is none.
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { mkdir, open, readFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { stateHome } from "./endpoint.js";
import { ConnectionFailedError } from "./errors.js";

const pauseMs = 20;
const graceMs = 1000;

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

/**
 * Starts `caisson serve` on the socket and returns when it is served. Of two servers that start at the same time one gets
 * the socket, and the other one ends.
 */
export async function startServer(program: string, socket: string, timeoutSeconds: number): Promise<void> {
  let deadline = Date.now() + timeoutSeconds * 1000;
  const directory = join(stateHome(), "server");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await mkdir(dirname(socket), { recursive: true, mode: 0o700 });
  const log = join(directory, "serve.log");
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  let failure = "";
  let running = true;
  try {
    // Detached: the server outlives this process, as its sandboxes do.
    const child = spawn(program, ["serve", "--socket", socket, "--listen", "none"], {
      detached: true,
      stdio: ["ignore", file.fd, file.fd],
    });
    child.once("error", (error) => {
      failure = `cannot start "${program}": ${error.message}; put caisson into PATH or set CAISSON_PROGRAM`;
    });
    child.once("exit", () => {
      // Perhaps since a server that another client started has the socket: that one may need a moment.
      running = false;
      deadline = Math.min(deadline, Date.now() + graceMs);
    });
    child.unref();
    while (!(await isServed(socket))) {
      if (failure) throw new ConnectionFailedError(failure);
      if (Date.now() > deadline) {
        const text = (await readFile(log, "utf8").catch(() => "")).slice(-500).trim();
        const what = running ? "does not answer" : "ended";
        throw new ConnectionFailedError(`the server on unix:${socket} ${what}: ${text || "no message"}`);
      }
      await sleep(pauseMs);
    }
  } finally {
    await file.close();
  }
}
