import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { systemClock } from '../../config/clock.js';
import { classify } from '../../exchange/classify.js';
import { within } from '../../exchange/timing.js';
import { failed, ok, type Finding } from './check.js';

/** An address that a connection goes to, and where it is set. */
export interface Place {
  host: string;
  port: number;
  option: string;
  /** `urls.baseUrl (SERVICE_BASE_URL)`. */
  described: string;
  /** `http.proxy (SERVICE_HTTP_PROXY)`. */
  proxyDescribed: string;
  /** The variable with a proxy that is set for this process, and that the module ignores. */
  ignoredProxy?: string;
}

/** Whether the name leads to an address. */
export async function checkName({ host, option, described }: Place, timeoutMs: number): Promise<Finding> {
  if (isIP(host)) return ok(`${host} is an address; there is no name to look up.`);
  const expired = () => Object.assign(new Error(), { code: 'no answer in time' });
  try {
    const found = await within({ clock: systemClock, timeoutMs, expired }, () => lookup(host, { all: true }));
    return ok(`${host} is ${found.map(({ address }) => address).join(', ')}.`);
  } catch (error) {
    const { reason = 'unknown reason' } = classify(error);
    return reason === 'ENOTFOUND' || reason === 'ENODATA'
      ? failed(
          `There is no host with the name ${host} (${reason}).`,
          `Check the spelling in ${described}. If it is right, the name may be known in another network only (a VPN, a cluster's own DNS).`,
          option,
        )
      : failed(
          `The name ${host} could not be looked up (${reason}): the DNS server did not answer, or answered with a failure.`,
          'Check that this machine or container has a network and a DNS server that answers (/etc/resolv.conf).',
          option,
        );
  }
}

/** Whether something takes connections there. */
export function checkConnection(place: Place, timeoutMs: number): Promise<Finding> {
  const { host, port } = place;
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (finding: Finding): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(finding);
    };
    const timer = setTimeout(() => end(noConnection(place, 'ETIMEDOUT')), timeoutMs);
    socket.once('connect', () => end(ok(`${host} takes connections on port ${port}.`)));
    socket.on('error', (error) => end(noConnection(place, classify(error).reason)));
  });
}

function noConnection(place: Place, reason = 'unknown reason'): Finding {
  const { host, port, described, option } = place;
  const where = `${host}, port ${port}`;
  const proxy = proxyHint(place);
  if (reason === 'ECONNREFUSED') {
    return failed(
      `${where}: the connection was refused (ECONNREFUSED). Nothing listens there, or a firewall rejects connections.`,
      `Check host and port of ${described}. If they are right, ask who runs the network whether this machine may connect there.${proxy}`,
      option,
    );
  }
  if (reason === 'ETIMEDOUT') {
    return failed(
      `${where}: no answer to the attempt to connect (ETIMEDOUT). Mostly a firewall that drops packets without a word; or the host is down.`,
      `Ask who runs the network to allow connections to ${where}. Check host and port of ${described} too.${proxy}`,
      option,
    );
  }
  return failed(
    `${where}: the connection failed (${reason}).`,
    `Check the network of this machine, and host and port of ${described}.${proxy}`,
    option,
  );
}

/** A network with a proxy lets nothing else out, and the module ignores the proxies of the environment. */
function proxyHint({ ignoredProxy, proxyDescribed }: Place): string {
  return ignoredProxy
    ? ` ${ignoredProxy} is set, but the module ignores it: set ${proxyDescribed} to go through a proxy.`
    : '';
}
