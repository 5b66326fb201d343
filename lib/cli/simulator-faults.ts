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

/** The words of faults, of which some are for the connections of a server, and not for a path. */
export const FAULT_WORDS = {
  named: NAMED_FAULTS,
  connection: ['reset-handshake', ...Object.keys(TLS_ALERTS)],
} as const;

export const FAULT_FORM =
  `<where>=<fault>[:<times>], for example '/banks/v1=503:3'. <where> is a path, or a server: ${FACES.join(', ')}. ` +
  `<fault> is a status from 400 to 599, a delay such as 2000ms, ${FAULT_WORDS.named.join(', ')}, or ok; ` +
  `for a server also ${FAULT_WORDS.connection.join(', ')}`;

/** What happens at a path or a server; without a rule, nothing any more. */
export interface PlacedFault {
  where: string;
  rule?: FaultRule;
}

/** Reads `/banks/v1=503:3`; undefined for a text of another form. */
export function readFault(text: string): PlacedFault | undefined {
  const [, where = '', word = '', count] = /^([^=?#]+)=([\w-]+)(?::([1-9]\d*))?$/.exec(text.trim()) ?? [];
  const face = FACES.find((each) => each === where);
  if (face === undefined && !where.startsWith('/')) return undefined;
  if (word === 'ok' && count === undefined) return { where };
  const fault = toFault(word, face);
  const times = count === undefined ? Infinity : Number(count);
  return fault && { where, rule: { ...(face ? { face } : { path: where }), times, fault } };
}

function toFault(word: string, face: SimulatorFace | undefined): SimulatorFault | undefined {
  if (/^[45]\d\d$/.test(word)) {
    const json = { status: `SIMULATED_${word}`, message: 'This failure was asked for' };
    return { status: Number(word), json };
  }
  const delay = /^(\d{1,9})ms$/.exec(word)?.[1];
  if (delay !== undefined) return { delayMs: Number(delay) };
  if (face !== undefined && word === 'reset-handshake') return word;
  if (face !== undefined && Object.hasOwn(TLS_ALERTS, word)) return { tlsAlert: word as TlsAlert };
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
