/**
 * Whether the proxy of `http.proxy` would only refuse again: a 4xx will come back, and a wrong password may lock the
 * account; its certificate stays what it is. What passes: a proxy that cannot be reached for the moment, or says 5xx.
 */
export function isProxyRefusal({ kind, reason = '' }: { kind: string; reason?: string }): boolean {
  return (
    kind === 'proxy' &&
    !/_(5\d\d|TIMEOUT|ECONN\w+|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_\w+|E\w+UNREACH)$/.test(reason)
  );
}
