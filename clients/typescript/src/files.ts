// Files of a sandbox's workspace. Paths are relative to it, or absolute inside it. A path is text; bytes that are not UTF-8
// are lone surrogates in it (names.ts).
import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { realpath, rename, rm, stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import type { Client } from "./client.js";
import { Events } from "./events.js";
import { decodePath, encodePaths } from "./names.js";
import type { Body, Response } from "./transport.js";
import type { FileChange, FileInfo } from "./types.js";

export class Files {
  private readonly sandbox: { id: string };

  constructor(
    private readonly client: Client,
    id: string,
  ) {
    this.sandbox = { id };
  }

  private content(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.client.send("readFile", { path: this.sandbox, query: { path }, headers });
  }

  /** The content of a file, or a part of it. */
  async read(path: string, options: { offset?: number; length?: number } = {}): Promise<Uint8Array> {
    const { offset = 0, length } = options;
    if (length === 0) return new Uint8Array();
    const whole = offset === 0 && length === undefined;
    const range = `bytes=${offset}-${length === undefined ? "" : offset + length - 1}`;
    return (await this.content(path, whole ? {} : { Range: range })).readAll();
  }

  /** The content of a file as text. */
  async text(path: string): Promise<string> {
    return Buffer.from(await this.read(path)).toString("utf8");
  }

  /** Creates or replaces a file, atomically. mode: permission bits, such as 0o755. Returns the size. */
  async write(path: string, content: Body, options: { mode?: number } = {}): Promise<number> {
    const query = { path, mode: options.mode?.toString(8) };
    return (await this.client.request("writeFile", { path: this.sandbox, query, raw: content })).size;
  }

  /** Copies a local file into the sandbox as a stream, without reading all of it into memory. */
  upload(source: string, path: string, options: { mode?: number } = {}): Promise<number> {
    return this.write(path, createReadStream(source, { highWaterMark: 256 << 10 }), options);
  }

  /** Copies a file of the sandbox to a local file, which appears only when it is complete. Returns its size. */
  async download(path: string, target: string): Promise<number> {
    return save(await this.content(path), target);
  }

  /** Unpacks a local tar archive into a directory of the sandbox. */
  async unpack(source: string, path = "."): Promise<void> {
    const raw = createReadStream(source, { highWaterMark: 256 << 10 });
    await this.client.request("writeArchive", { path: this.sandbox, query: { path }, raw });
  }

  /** Saves a directory of the sandbox as a local tar archive. Its file names are untrusted: unpack it with care. */
  async pack(path: string, target: string, options: { command_timeout?: number } = {}): Promise<number> {
    return save(await this.client.send("readArchive", { path: this.sandbox, query: { path, ...options } }), target);
  }

  async list(path = "."): Promise<FileInfo[]> {
    const { files } = await this.client.request("listFiles", { path: this.sandbox, query: { path } });
    return files.map((one) => decodePath(one, "name"));
  }

  async stat(path: string): Promise<FileInfo> {
    return decodePath(await this.client.request("statFile", { path: this.sandbox, query: { path } }), "name");
  }

  /** Renames a file or directory. replace: also if the target exists. */
  async move(source: string, target: string, options: { replace?: boolean } = {}): Promise<void> {
    await this.client.request("moveFile", { path: this.sandbox, body: { ...encodePaths({ from: source, to: target }), ...options } });
  }

  /** Creates a directory and its parents. */
  async mkdir(path: string): Promise<void> {
    await this.client.request("makeDirectory", { path: this.sandbox, body: encodePaths({ path }) });
  }

  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    await this.client.request("removeFile", { path: this.sandbox, query: { path, ...options } });
  }

  /** Watches for changes below a directory. Resolves when the server has started to watch. */
  async watch(path = "."): Promise<Events<FileChange>> {
    const source = await this.client.open_events("watchFiles", { path: this.sandbox, query: { path } });
    const changes = new Events(source, (event): FileChange => {
      return decodePath({ path: "", ...(JSON.parse(event.data) as object), kind: event.type }, "path");
    });
    try {
      while ((await changes.next()).value?.kind !== "ready");
    } catch (error) {
      changes.close();
      throw error;
    }
    return changes;
  }
}

/** Writes a partial file and renames it at the end, so that a failed download does not change the target. */
async function save(response: Response, target: string): Promise<number> {
  const path = await realpath(target).catch(() => target);
  const before = await stat(path).catch(() => undefined);
  const replaces = before === undefined || before.isFile();  // not a pipe or device
  const part = replaces ? `${path}.${randomBytes(6).toString("hex")}.part` : path;
  const file = createWriteStream(part, { flags: replaces ? "wx" : "w", mode: before?.mode ?? 0o666 });
  try {
    await pipeline(Readable.from(response.body), file);
    if (replaces) await rename(part, path);
  } catch (error) {
    if (replaces) await rm(part, { force: true });
    throw error;
  }
  return file.bytesWritten;
}
