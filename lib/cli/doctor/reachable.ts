import { connect, isIP, Socket } from 'node:net';
import { type Duplex } from 'node:stream';
import { type Secret } from '../../config/secret.js';
import { classify } from '../../exchange/classify.js';
import { explainFault, type ExplainedFault, type FaultPlace } from '../../exchange/explain-fault.js';
import { authorityOf, timeForEachAddress } from '../../tls/connections/connecting.js';
import { ProxyTunnel } from '../../tls/connections/proxy-tunnel.js';
import { failed, ok, type Finding } from './check.js';

/** Where a connection goes. */
export interface Transport {
  host: string;
  port: number;
  proxy?: Secret;
}

/** An address that a connection goes to, and where it is set. */
export interface Place extends FaultPlace, Transport {}

/** As the error of a call would say it. */
export function explained(place: Place, fault: ExplainedFault): Finding {
  const where = `${place.host}, port ${place.port}`;
  const { message, hint = 'Run the check again.' } = explainFault(where, fault, place);
  return failed(message, hint);
}

/** A connection, through the proxy if there is one. Its errors come as events. */
export function openTransport({ host, port, proxy }: Transport, timeoutMs: number): Duplex {
  if (proxy) return new ProxyTunnel(proxy, authorityOf({ host, port }), timeoutMs);
  return connect({ host, port, ...timeForEachAddress(timeoutMs) });
}

/** Whether something takes connections there; with a proxy, whether that opens a tunnel to it. */
export function checkConnection(place: Place, timeoutMs: number): Promise<Finding> {
  const { host, port, proxy } = place;
  return new Promise((resolve) => {
    const transport = openTransport({ host, port, proxy }, timeoutMs);
    let isLookingUp = !proxy && isIP(host) === 0;
    const end = (finding: Finding): void => {
      clearTimeout(timer);
      transport.destroy();
      resolve(finding);
    };
    const fail = (fault: ExplainedFault): void => {
      const addresses =
        transport instanceof Socket ? transport.autoSelectFamilyAttemptedAddresses : undefined;
      end(explained(place, { ...fault, addresses }));
    };
    const timer = setTimeout(() => {
      if (proxy) fail({ kind: 'proxy', reason: 'ERR_PROXY_TIMEOUT' });
      else if (isLookingUp) fail({ kind: 'dns', reason: 'no answer in time' });
      else fail({ kind: 'timeout', reason: 'ETIMEDOUT' });
    }, timeoutMs);
    transport.once('lookup', () => (isLookingUp = false));
    transport.on('error', (error) => fail(classify(error)));
    // What is written waits until the connection is open.
    transport.write(Buffer.alloc(0), (error) => {
      if (error) return;
      const at = transport instanceof Socket && !isIP(host) ? ` (${transport.remoteAddress})` : '';
      end(
        ok(
          proxy
            ? `The proxy opens a tunnel to ${host}, port ${port}.`
            : `${host}${at} takes connections on port ${port}.`,
        ),
      );
    });
  });
}
