/** Host and port of a destination as in a URL, with the brackets of an IPv6 address. */
export function authorityOf({ host, port }: { host?: string | null; port?: number | string | null }): string {
  return `${host?.includes(':') ? `[${host}]` : host}:${port ?? 443}`;
}

/**
 * The TCP keep-alive probes of an idle connection begin after so many milliseconds, so that firewalls do not drop it. Linux closes
 * the connection after ten probes without a reply, one per second.
 */
export const KEEP_ALIVE_MS = 1_000;

/**
 * The option of net.connect for a host name with several addresses. By default Node gives each address but the last 250 ms,
 * which is too short for a distant server (https://github.com/nodejs/node/issues/54359). Here each gets a quarter of the time limit.
 */
export function attemptTimeoutPerAddress(connectTimeoutMs?: number) {
  return connectTimeoutMs ? { autoSelectFamilyAttemptTimeout: Math.ceil(connectTimeoutMs / 4) } : {};
}
