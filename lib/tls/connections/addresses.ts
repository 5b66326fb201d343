import dns, { type LookupAddress } from 'node:dns';
import {
  getDefaultAutoSelectFamilyAttemptTimeout,
  type LookupFunction,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net';
// Node's own: fake timers of a host's tests would hold the answer back.
import { nextTick } from 'node:process';
import { codedError } from '../../errors/coded-error.js';

type ConnectOptions = Partial<
  Pick<TcpNetConnectOpts, 'lookup' | 'autoSelectFamily' | 'autoSelectFamilyAttemptTimeout'>
>;

const MAX_ADDRESSES = 4;
const MIN_ATTEMPT_MS = 250;
/** The part of the time to connect that TCP gets; the rest is for name, proxy and TLS. */
const PART_FOR_TCP = 0.8;
/** Node's own defaults, by version. Any other value is the host's choice. */
const NODE_ATTEMPT_MS = [250, 500];

/**
 * Connects to the addresses of a name one after the other, at most four, each with its fair part of the time. Node gives
 * each but the last only 250 ms, which takes a distant server or one lost packet for dead. The host's choice counts: the
 * options of its request, or the defaults of its process. Bun and Deno connect in their own way.
 *
 * Node takes this time before it knows how many addresses there are, so the look-up connects once more when it knows.
 * @param options without properties of Object.prototype: `ownOptions`
 */
export function connectInTurn<S extends Socket, O extends ConnectOptions>(
  connect: (options: O) => S,
  options: O,
  connectTimeoutMs: number | undefined,
): S {
  const { lookup = dns.lookup } = options;
  if (connectTimeoutMs === undefined || !isLeftToUs(options)) return connect(options);
  const lookUp: LookupFunction = (host, how, found) => {
    const onFound: typeof found = (error, addresses, family) => {
      // A text if Node was asked for one address: by `family`, or by the defaults of the process.
      if (error || typeof addresses === 'string') return found(error, addresses, family);
      // Node would throw.
      if (!Array.isArray(addresses) || addresses.length === 0) return found(notFound(host), []);
      if (addresses.length === 1 || !socket.connecting) return found(null, addresses);
      const tried = inTurn(addresses).slice(0, MAX_ADDRESSES);
      socket.connect({
        ...(options as O & TcpNetConnectOpts),
        lookup: (_host, _how, known) => known(null, tried),
        autoSelectFamilyAttemptTimeout: attemptTimeout(connectTimeoutMs, tried.length),
      });
    };
    // A host's look-up may answer at once.
    lookup(host, how, (...result) => nextTick(onFound, ...result));
  };
  const socket = connect({ ...options, lookup: lookUp });
  return socket;
}

/** Milliseconds for one of so many addresses. */
export function attemptTimeout(connectTimeoutMs: number, addresses: number): number {
  return Math.max(MIN_ATTEMPT_MS, Math.round((PART_FOR_TCP * connectTimeoutMs) / addresses));
}

function isLeftToUs({ autoSelectFamily, autoSelectFamilyAttemptTimeout }: ConnectOptions): boolean {
  return (
    autoSelectFamily === undefined &&
    autoSelectFamilyAttemptTimeout === undefined &&
    !('bun' in process.versions || 'deno' in process.versions) &&
    NODE_ATTEMPT_MS.includes(getDefaultAutoSelectFamilyAttemptTimeout())
  );
}

/** The error of Node's own look-up. */
function notFound(hostname: string): Error {
  const error = codedError(`getaddrinfo ENOTFOUND ${hostname}`, 'ENOTFOUND');
  return Object.assign(error, { syscall: 'getaddrinfo', hostname });
}

/** As Node tries them: IPv6 and IPv4 by turns, in the order of the resolver. */
function inTurn(addresses: LookupAddress[]): LookupAddress[] {
  const [first, other] = [0, 1].map((isOther) =>
    addresses.filter(({ family }) => (family === addresses[0].family ? 0 : 1) === isOther),
  );
  return Array.from({ length: addresses.length }, (_, at) => [first[at], other[at]])
    .flat()
    .filter((address) => address !== undefined);
}
