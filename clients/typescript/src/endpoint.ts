// The address of the server.
import { isIPv4 } from "node:net";
import { homedir } from "node:os";

import { CaissonError } from "./errors.js";

export interface Endpoint {
  /** Path of a unix socket; empty for TCP. */
  socket: string;
  /** `http://HOST:PORT` or `https://HOST:PORT`; for a unix socket `http://localhost`. */
  origin: string;
  /** Whether other machines cannot read the traffic. */
  isPrivate: boolean;
}

export function unixEndpoint(path: string): Endpoint {
  return { socket: path, origin: "http://localhost", isPrivate: true };
}

/** `unix:/path/to/socket`, `http://HOST:PORT` or `https://HOST:PORT`. */
export function parseUrl(text: string): Endpoint {
  if (text.startsWith("unix:")) return unixEndpoint(text.slice("unix:".length).replace(/^\/\//, ""));
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw invalidAddress(text);
  }
  if (!["http:", "https:"].includes(url.protocol) || !["", "/"].includes(url.pathname)) throw invalidAddress(text);
  // Parse the address: 127.example.org starts with 127 but is a name.
  const loopback = ["localhost", "[::1]"].includes(url.hostname) || (isIPv4(url.hostname) && url.hostname.startsWith("127."));
  return { socket: "", origin: url.origin, isPrivate: loopback || url.protocol === "https:" };
}

function invalidAddress(text: string): CaissonError {
  return new CaissonError(`invalid server address "${text}": expected unix:/PATH, http://HOST:PORT or https://HOST:PORT`);
}

/** The directory of the local server's state: CAISSON_HOME, or caisson's directory in the user's data directory. */
export function stateHome(): string {
  const places: Array<[string | undefined, string]> = [
    [process.env["CAISSON_HOME"], ""],
    [process.env["XDG_DATA_HOME"], "/caisson"],
    [process.env["HOME"], "/.local/share/caisson"],
  ];
  for (const [value, below] of places) if (value?.startsWith("/")) return value + below;
  return homedir() + "/.local/share/caisson";
}

/** The unix socket on which the user's own server listens by default. */
export function localEndpoint(): Endpoint {
  return unixEndpoint(stateHome() + "/server/socket");
}

export function describeEndpoint(endpoint: Endpoint): string {
  return endpoint.socket ? `unix:${endpoint.socket}` : endpoint.origin;
}
