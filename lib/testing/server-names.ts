import { isIP } from 'node:net';
import { type SimulatorOptions } from './simulator.options.js';

/** The address on which a simulator listens by default. */
export const LOOPBACK = '127.0.0.1';
const ANY_ADDRESS = ['0.0.0.0', '::'];

type Reach = Pick<SimulatorOptions, 'host' | 'serverNames'>;

/**
 * Returns the names in the server certificate. The first is the host in all addresses of the simulator.
 *
 * @throws Error for an invalid host or name
 */
export function serverNamesOf({ host = LOOPBACK, serverNames = [] }: Reach): string[] {
  if (isIP(host) === 0) {
    throw new Error(
      `host (--host) must be an IP address, for example 0.0.0.0, not '${host}'. A host name belongs in serverNames (--san).`,
    );
  }
  const wrong = serverNames.find((name) => !isHost(name));
  if (wrong !== undefined) {
    throw new Error(
      `serverNames (--san) must be host names without https://, port or comma, not '${wrong}'.`,
    );
  }
  // 0.0.0.0 is an address to listen on, and clients cannot connect to it. So it is not a name of the server.
  const own = listensOnAll(host) ? [] : [host];
  return [...new Set([...serverNames, ...own, LOOPBACK, 'localhost', '::1'])];
}

/** Whether this is the address for listening on all interfaces: 0.0.0.0 or ::. */
export function listensOnAll(host: string): boolean {
  return ANY_ADDRESS.includes(host);
}

function isHost(name: string): boolean {
  const address = `https://${name}`;
  const isName = /^[\w.-]+$/.test(name) && URL.canParse(address);
  return isIP(name) > 0 || (isName && new URL(address).hostname === name.toLowerCase());
}
