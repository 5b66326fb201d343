import {
  type FaultHandle,
  type FaultRule,
  isConnectionFault,
  NAMED_FAULTS,
  type SimulatorFault,
} from '../testing/faults.js';
import { FACES, type SimulatorFace } from '../testing/request-log.js';
import { type ServiceSimulator } from '../testing/simulator.js';
import { TLS_ALERTS, type TlsAlert } from '../testing/tls-alert.js';
import { UsageError } from './command.js';

/** The words of faults, of which some are for the connections of a server, and not for a path. */
export const FAULT_WORDS = {
  named: NAMED_FAULTS,
  connection: ['reset-handshake', ...Object.keys(TLS_ALERTS)],
} as const;

const FORM = "<where>=<fault>[:<times>], for example '/banks/v1=503:3'";

export const FAULT_HELP =
  `A line is ${FORM}. <where> is a path, or a server: ${FACES.join(', ')}. ` +
  `<fault> is a status from 400 to 599, a delay such as 2000ms, ${FAULT_WORDS.named.join(', ')}, or ok; ` +
  `for a server also ${FAULT_WORDS.connection.join(', ')}.`;

/** What happens at a path or a server; without a rule, nothing any more. */
export interface PlacedFault {
  where: string;
  rule?: FaultRule;
}

/**
 * Reads `/banks/v1=503:3`.
 *
 * @throws UsageError that begins with the text, and says what is wrong with it
 */
export function readFault(text: string): PlacedFault {
  const refused = (reason: string) => new UsageError(`'${text.trim()}': ${reason}`);
  const parts = /^([^=]+)=([^:]*)(?::(.*))?$/.exec(text.trim());
  if (!parts) throw refused(`it is not of the form ${FORM}.`);
  const [, where = '', word = '', count] = parts;
  const face = FACES.find((each) => each === where);
  if (face === undefined && !/^\/[^?#]*$/.test(where)) throw refused(`'${where}' is no path, and no server.`);
  if (word === 'ok') {
    if (count !== undefined) throw refused("'ok' takes no number of times.");
    return { where };
  }
  const fault = toFault(word);
  if (!fault) throw refused(`'${word}' is no fault.`);
  if (face === undefined && isConnectionFault(fault)) {
    throw refused(`'${word}' is a fault of a server, and not of a path.`);
  }
  if (count !== undefined && !/^[1-9]\d*$/.test(count)) throw refused(`'${count}' is no number of times.`);
  const times = count === undefined ? Infinity : Number(count);
  return { where, rule: { ...(face ? { face } : { path: where }), times, fault } };
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

/** The faults that were asked for in words, by their place. */
export class PlacedFaults {
  readonly #simulator: ServiceSimulator;
  readonly #handles = new Map<string, FaultHandle[]>();

  constructor(simulator: ServiceSimulator) {
    this.#simulator = simulator;
  }

  /** After those that are there. */
  add({ where, rule }: PlacedFault): void {
    if (!rule) return;
    const handles = this.#handles.get(where) ?? [];
    this.#handles.set(where, [...handles, this.#simulator.fail(rule)]);
    // A connection that stands would not notice.
    if (isConnectionFault(rule.fault)) this.#simulator.dropConnections(where as SimulatorFace);
  }

  /** In place of those that are there. */
  replace(placed: PlacedFault): void {
    for (const handle of this.#handles.get(placed.where) ?? []) handle.stop();
    this.#handles.delete(placed.where);
    this.add(placed);
  }
}
