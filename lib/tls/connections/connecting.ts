/** Host and port of a target, as in an address. */
export function authorityOf({ host, port }: { host?: string | null; port?: number | string | null }): string {
  return `${host?.includes(':') ? `[${host}]` : host}:${port ?? 443}`;
}

/**
 * An idle connection is probed after so many milliseconds (TCP keep-alive), which keeps it known to firewalls. Linux takes it for
 * dead after ten probes without a response, one a second.
 */
export const KEEP_ALIVE_MS = 1_000;

/** Options of net.connect. Node gives each address but the last 250 ms, and takes a distant server for dead. */
export function attemptTimeoutPerAddress(connectTimeoutMs?: number): {
  autoSelectFamilyAttemptTimeout?: number;
} {
  return connectTimeoutMs ? { autoSelectFamilyAttemptTimeout: Math.ceil(connectTimeoutMs / 4) } : {};
}
