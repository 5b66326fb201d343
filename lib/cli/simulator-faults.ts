import { type FaultRule, isConnectionFault, NAMED_FAULTS, type SimulatorFault } from '../testing/faults.js';
import { FACES } from '../testing/request-log.js';
import { TLS_ALERTS, type TlsAlert } from '../testing/tls-alert.js';
import { rejectWindowsPath, UsageError } from './command.js';

/** The words for faults in --fail. Those in `connection` affect a server's connections, so they cannot be given for a path. */
export const FAULT_WORDS = {
  named: NAMED_FAULTS,
  connection: ['reset-handshake', ...Object.keys(TLS_ALERTS)],
} as const;

/** Parses the value of --fail, for example `/banks/v1=503:3`. @throws UsageError */
export function parseFault(text: string): FaultRule {
  const usageError = (reason: string) => new UsageError(`--fail '${text}': ${reason}`);
  const parts = /^([^=]+)=([^:]*)(?::([1-9]\d*))?$/.exec(text);
  if (!parts) throw usageError("must be <where>=<fault>[:<times>], for example '/banks/v1=503:3'.");
  const [, where, word, count] = parts;
  rejectWindowsPath(where);
  const face = FACES.find((each) => each === where);
  if (face === undefined && !/^\/[^?#]*$/.test(where))
    throw usageError(`'${where}' is neither a path nor a server.`);
  const fault = parseFaultWord(word);
  if (!fault) {
    const words = Object.values(FAULT_WORDS).flat().join(', ');
    throw usageError(
      `'${word}' is not a fault. A fault is a status from 400 to 599, a delay such as 2000ms, ${words}.`,
    );
  }
  if (face === undefined && isConnectionFault(fault)) {
    throw usageError(`'${word}' affects whole connections: give a server instead of a path.`);
  }
  const times = count === undefined ? Infinity : Number(count);
  return { ...(face ? { face } : { path: where }), times, fault };
}

function parseFaultWord(word: string): SimulatorFault | undefined {
  if (/^[45]\d\d$/.test(word)) {
    const json = { status: `SIMULATED_${word}`, message: 'This failure was injected with --fail' };
    return { status: Number(word), json };
  }
  const delay = /^(\d{1,9})ms$/.exec(word)?.[1];
  if (delay !== undefined) return { delayMs: Number(delay) };
  if (word === 'reset-handshake') return word;
  if (Object.hasOwn(TLS_ALERTS, word)) return { tlsAlert: word as TlsAlert };
  return NAMED_FAULTS.find((name) => name === word);
}
