import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { systemClock } from '../../config/clock.js';
import { withNames, type DescribeOption } from '../../errors/index.js';
import { classify } from '../../exchange/classify.js';
import { explainFault, type ExplainedFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { within } from '../../exchange/timing.js';
import { failed, ok, type Finding } from './check.js';

/** An address that a connection goes to, and where it is set. */
export interface Place extends FaultPlace {
  host: string;
  port: number;
  describeOption: DescribeOption;
  /** The variable with a proxy that is set for this process, and that the module ignores. */
  ignoredProxy?: string;
}

/** As the error of a call would say it. */
export function explained(place: Place, fault: ExplainedFault, more = ''): Finding {
  const where = `${place.host}, port ${place.port}`;
  const { message, hint = 'Run the check again.', options } = explainFault(where, fault, place);
  return failed(message, withNames(hint, options, place.describeOption) + more);
}

/** Whether the name leads to an address. */
export async function checkName(place: Place, timeoutMs: number): Promise<Finding> {
  const { host } = place;
  if (isIP(host)) return ok(`${host} is an address; there is no name to look up.`);
  const expired = () => Object.assign(new Error(), { code: 'no answer in time' });
  try {
    const found = await within({ clock: systemClock, timeoutMs, expired }, () => lookup(host, { all: true }));
    return ok(`${host} is ${found.map(({ address }) => address).join(', ')}.`);
  } catch (error) {
    return explained(place, { ...classify(error), kind: 'dns' });
  }
}

/** Whether something takes connections there. */
export function checkConnection(place: Place, timeoutMs: number): Promise<Finding> {
  const { host, port, ignoredProxy, describeOption } = place;
  // A network with a proxy lets nothing else out, and the module ignores the proxies of the environment.
  const more = ignoredProxy
    ? ` ${ignoredProxy} is set, but the module ignores it: set ${describeOption('http.proxy')} to go through a proxy.`
    : '';
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (finding: Finding): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(finding);
    };
    const timedOut = { kind: 'timeout', reason: 'ETIMEDOUT' } as const;
    const timer = setTimeout(() => end(explained(place, timedOut, more)), timeoutMs);
    socket.once('connect', () => end(ok(`${host} takes connections on port ${port}.`)));
    socket.on('error', (error) => end(explained(place, classify(error), more)));
  });
}
