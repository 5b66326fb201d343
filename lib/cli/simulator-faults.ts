import { type FaultRule, isConnectionFault, NAMED_FAULTS, type SimulatorFault } from '../testing/faults.js';
import { FACES } from '../testing/request-log.js';
import { TLS_ALERTS, type TlsAlert } from '../testing/tls-alert.js';
import { refuseRewritten, UsageError } from './command.js';

/** The words of faults, of which some are for the connections of a server, and not for a path. */
export const FAULT_WORDS = {
  named: NAMED_FAULTS,
  connection: ['reset-handshake', ...Object.keys(TLS_ALERTS)],
} as const;

/**
 * Reads `/banks/v1=503:3`.
 *
 * @throws UsageError that says what is wrong with it
 */
export function readFault(text: string): FaultRule {
  const refused = (reason: string) => new UsageError(`--fail '${text}': ${reason}`);
  const parts = /^([^=]+)=([^:]*)(?::([1-9]\d*))?$/.exec(text);
  if (!parts)
    throw refused("it is not of the form <where>=<fault>[:<times>], for example '/banks/v1=503:3'.");
  const [, where, word, count] = parts;
  refuseRewritten(where);
  const face = FACES.find((each) => each === where);
  if (face === undefined && !/^\/[^?#]*$/.test(where)) throw refused(`'${where}' is no path, and no server.`);
  const fault = toFault(word);
  if (!fault) throw refused(`'${word}' is no fault.`);
  if (face === undefined && isConnectionFault(fault)) {
    throw refused(`'${word}' is a fault of a server, and not of a path.`);
  }
  const times = count === undefined ? Infinity : Number(count);
  return { ...(face ? { face } : { path: where }), times, fault };
}

function toFault(word: string): SimulatorFault | undefined {
  if (/^[45]\d\d$/.test(word)) {
    const json = { status: `SIMULATED_${word}`, message: 'This failure was asked for' };
    return { status: Number(word), json };
  }
  const delay = /^(\d{1,9})ms$/.exec(word)?.[1];
  if (delay !== undefined) return { delayMs: Number(delay) };
  if (word === 'reset-handshake') return word;
  if (Object.hasOwn(TLS_ALERTS, word)) return { tlsAlert: word as TlsAlert };
  return NAMED_FAULTS.find((name) => name === word);
}
