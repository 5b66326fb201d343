import { isIP } from 'node:net';
import { type SimulatorOptions } from './simulator.options.js';

/** Where a simulator listens by default. */
export const LOOPBACK = '127.0.0.1';
const ANY_ADDRESS = ['0.0.0.0', '::'];

type Reach = Pick<SimulatorOptions, 'host' | 'serverNames'>;

/**
 * The names in the server certificate. The first is the host of all addresses.
 * @throws Error for a name that no address can have
 */
export function serverNamesOf({ host = LOOPBACK, serverNames = [] }: Reach): string[] {
  if (isIP(host) === 0) {
    throw new Error(
      `host takes an IP address, for example 0.0.0.0, not '${host}'. A name belongs in serverNames, or --san.`,
    );
  }
  const wrong = serverNames.find((name) => !isHost(name));
  if (wrong !== undefined) {
    throw new Error(
      `serverNames, or --san, takes names of hosts without https://, port or comma, not '${wrong}'.`,
    );
  }
  // An address to listen on, to which nobody can connect from elsewhere.
  const own = listensOnAll(host) ? [] : [host];
  return [...new Set([...serverNames, ...own, LOOPBACK, 'localhost', '::1'])];
}

/** Whether the address to listen on stands for all of this machine, and so names none. */
export function listensOnAll(host: string): boolean {
  return ANY_ADDRESS.includes(host);
}

/** Whether an address can have it as its host. */
function isHost(name: string): boolean {
  const address = `https://${name}`;
  const isName = /^[\w.-]+$/.test(name) && URL.canParse(address);
  return isIP(name) > 0 || (isName && new URL(address).hostname === name.toLowerCase());
}
