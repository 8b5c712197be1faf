// The hosts that a sandbox may connect to.
import type { Client } from "./client.js";
import type { NetworkInfo } from "./types.js";

export class Network {
  private readonly sandbox: { id: string };

  constructor(
    private readonly client: Client,
    id: string,
  ) {
    this.sandbox = { id };
  }

  get(): Promise<NetworkInfo> {
    return this.client.request("getNetwork", { path: this.sandbox });
  }

  /**
   * Allows a host (a pattern, with or without :PORT). A token needs the owner's approval: ApprovalRequiredError.
   * stop: kill running processes if the sandbox must restart for its first host.
   */
  allow(host: string, options: { stop?: boolean } = {}): Promise<NetworkInfo> {
    return this.client.request("changeNetwork", { path: this.sandbox, body: { action: "allow", host, ...options } });
  }

  /** Denies a host, even if a pattern allows it. */
  deny(host: string): Promise<NetworkInfo> {
    return this.client.request("changeNetwork", { path: this.sandbox, body: { action: "deny", host } });
  }

  /** Removes a host from the allowed hosts. */
  remove(host: string): Promise<NetworkInfo> {
    return this.client.request("changeNetwork", { path: this.sandbox, body: { action: "remove", host } });
  }

  /** Credentials that are added to requests outside the sandbox, without their values. */
  async credentials(): Promise<Array<Record<string, unknown>>> {
    return (await this.client.request("listCredentials", { path: this.sandbox })).credentials;
  }
}
