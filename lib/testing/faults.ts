import { inspect } from 'node:util';
import { FACES, type SimulatorFace, type RecordedRequest } from './request-log.js';
import { matchesTemplate } from './route-table.js';
import { type TlsAlert, TLS_ALERTS } from './servers/client-certificate.js';

/** Faults of a connection, before any request on it is read. */
export type ConnectionFault =
  /** The connection is reset before the TLS handshake. */
  | 'reset-handshake'
  /** The handshake ends with this alert (TLS 1.3; on TLS 1.2 the connection is closed). */
  | { tlsAlert: TlsAlert };

/** Faults of a request. Each replaces the usual response. */
export type AnswerFault =
  /** The call is executed, but its response is lost: the connection is reset. */
  | 'lost'
  /** The call is not executed, and the connection is reset without a response. */
  | 'reset'
  /** Status 200 and headers, then a reset. */
  | 'reset-after-headers'
  /** Half of the body, then the connection is closed. */
  | 'truncate'
  /** No response at all: the client has to time out. */
  | 'hang'
  /** Status 200 with an HTML page. */
  | 'html'
  /** Status 200 with an empty body. */
  | 'empty'
  /** Status 200 with gzip: a JSON string that decompresses to this number of bytes. */
  | { gzipBombBytes: number }
  /** This response instead of the usual one. `json` is sent as JSON, `body` unchanged. */
  | {
      status: number;
      json?: unknown;
      body?: string | undefined;
      headers?: Record<string, string> | undefined;
    }
  /** The usual response after this number of milliseconds. */
  | { delayMs: number }
  /** Status 200, then one byte of the body at this interval in milliseconds, without end. */
  | { trickleMs: number }
  /** The usual response of the token endpoint with these fields replaced. `undefined` leaves a field out. */
  | { tokenResponse: Record<string, unknown> };

/** A fault of a connection or of a request. */
export type SimulatorFault = ConnectionFault | AnswerFault;

/** The response faults that are given as a text. */
export const NAMED_FAULTS = [
  'lost',
  'reset',
  'reset-after-headers',
  'truncate',
  'hang',
  'html',
  'empty',
] as const satisfies readonly AnswerFault[];

/** A fault that is given as an object has one of these keys. */
const FAULT_KEYS = ['status', 'delayMs', 'trickleMs', 'tokenResponse', 'gzipBombBytes', 'tlsAlert'] as const;

/** Says which requests fail, how, and how often. A condition that is left out matches every request. */
export interface FaultRule {
  face?: SimulatorFace | readonly SimulatorFace[] | undefined;
  /** Not for connection faults. */
  method?: string | undefined;
  /**
   * A text must begin with a slash, and is compared with the path without query and trailing slash. `{id}` in it matches any
   * text. Not for connection faults.
   */
  path?: string | RegExp | undefined;
  /** Not for connection faults. */
  when?: ((request: RecordedRequest) => boolean) | undefined;
  /** How many requests (or connections) fail. Default: 1. */
  times?: number | undefined;
  fault: SimulatorFault;
}

/** Returned by `simulator.fail()`. */
export interface FaultHandle {
  /** How many requests (or connections) have failed so far. */
  readonly hits: number;
  /** Ends the fault. */
  stop(): void;
}

interface ActiveRule {
  rule: FaultRule;
  hits: number;
}

/** The active faults. The first that matches is used. */
export class FaultBook {
  readonly #rules = new Set<ActiveRule>();

  /** @throws TypeError for a rule that can never match */
  add(rule: FaultRule): FaultHandle {
    const mistake = explainMistake(rule);
    if (mistake !== undefined) throw new TypeError(`simulator.fail(): ${mistake}`);
    const active: ActiveRule = { rule, hits: 0 };
    this.#rules.add(active);
    return {
      get hits() {
        return active.hits;
      },
      stop: () => void this.#rules.delete(active),
    };
  }

  clear(): void {
    this.#rules.clear();
  }

  /** Returns the fault for a request, and counts a hit. */
  takeForRequest(request: RecordedRequest): AnswerFault | undefined {
    const match = this.#take((rule) => !isConnectionFault(rule.fault) && matchesRequest(rule, request));
    return match as AnswerFault | undefined;
  }

  /** Returns the fault for a new connection, and counts a hit. */
  takeForConnection(face: SimulatorFace, stage: 'accepted' | 'handshaken'): ConnectionFault | undefined {
    const fits = (fault: SimulatorFault) =>
      isConnectionFault(fault) && (fault === 'reset-handshake') === (stage === 'accepted');
    const match = this.#take((rule) => fits(rule.fault) && matchesServer(rule, face));
    return match as ConnectionFault | undefined;
  }

  #take(fits: (rule: FaultRule) => boolean): SimulatorFault | undefined {
    for (const active of this.#rules) {
      const { rule, hits } = active;
      if (hits >= (rule.times ?? 1) || !fits(rule)) continue;
      active.hits += 1;
      return rule.fault;
    }
    return undefined;
  }
}

function explainMistake({ face = [], path, fault }: FaultRule): string | undefined {
  const unknown = [face].flat().find((each) => !FACES.includes(each));
  if (unknown !== undefined) return `face must be one of ${FACES.join(', ')}, not '${unknown}'.`;
  if (typeof path === 'string' && !/^\/[^?#]*$/.test(path)) {
    return `the path '${path}' matches no request. A path must begin with a slash and have no query, for example '/banks/v1'.`;
  }
  try {
    if (typeof path === 'string') matchesTemplate(path, '/');
  } catch (error) {
    return (error as Error).message;
  }
  if (isKnown(fault)) return undefined;
  const names = [...NAMED_FAULTS, 'reset-handshake'].join(', ');
  const alerts = Object.keys(TLS_ALERTS).join(', ');
  return `${inspect(fault)} is not a fault. A fault is ${names}, or an object with ${FAULT_KEYS.join(', ')} (${alerts}).`;
}

function isKnown(fault: SimulatorFault): boolean {
  if (typeof fault === 'string') return ['reset-handshake', ...NAMED_FAULTS].includes(fault);
  if (typeof fault !== 'object' || fault === null) return false;
  if ('tlsAlert' in fault) return Object.hasOwn(TLS_ALERTS, fault.tlsAlert);
  return FAULT_KEYS.some((key) => key in fault);
}

export function isConnectionFault(fault: SimulatorFault): fault is ConnectionFault {
  return fault === 'reset-handshake' || (typeof fault === 'object' && 'tlsAlert' in fault);
}

function matchesServer({ face, fault }: FaultRule, actual: SimulatorFace): boolean {
  if (typeof fault === 'object' && 'tokenResponse' in fault && actual !== 'token') return false;
  return face === undefined || [face].flat().includes(actual);
}

function matchesRequest(rule: FaultRule, request: RecordedRequest): boolean {
  const { method = request.method, path = /^/, when } = rule;
  if (!matchesServer(rule, request.face) || method.toUpperCase() !== request.method) return false;
  return matchesPath(path, request.path) && (when?.(request) ?? true);
}

function matchesPath(expected: string | RegExp, path: string): boolean {
  if (typeof expected !== 'string') return path.search(expected) !== -1;
  const [actual] = path.split('?');
  return expected === actual || matchesTemplate(expected, actual);
}
