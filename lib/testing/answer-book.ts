import { METHODS, validateHeaderName, validateHeaderValue } from 'node:http';
import { inspect } from 'node:util';
import { isNativeError, isUint8Array } from 'node:util/types';
import { type SimulatedAnswer } from './servers/answer.js';
import { matchPath } from './path-pattern.js';
import { type RecordedRequest } from './request-log.js';

/** A request, as a function for `simulator.answer()` gets it. */
export interface SimulatedRequest extends RecordedRequest {
  /** By the names in the path, decoded: `{ id: 'a-1' }` for `/accounts/v1/:id`. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** An answer to a call. */
export interface SimulatorAnswer {
  /** From 200 to 599. Default 200. */
  status?: number;
  /** Is serialised. */
  json?: unknown;
  /** Is sent as it is. */
  body?: string | Uint8Array;
  headers?: Record<string, string>;
}

/** An answer, or a function that makes one for each call. */
export type SimulatorAnswerer =
  SimulatorAnswer | ((request: SimulatedRequest) => SimulatorAnswer | Promise<SimulatorAnswer>);

interface Route {
  method: string;
  path: string;
  answer: SimulatorAnswerer;
}

const KEYS = ['status', 'json', 'body', 'headers'];

/** The answers of a test's own, by method and path. The last one that was added counts first. */
export class AnswerBook {
  readonly #routes: Route[] = [];

  /** @throws TypeError for a method, path or status that no call can have, and for an answer with other keys, or both contents */
  add(method: string, path: string, answer: SimulatorAnswerer): void {
    if (!METHODS.includes(method.toUpperCase()))
      throw new TypeError(`simulator.answer(): there is no method '${method}'.`);
    if (!/^(\/[^/:?#*{}]+|\/:[A-Za-z]\w*)+$/.test(path)) {
      throw new TypeError(
        `simulator.answer(): a path is as '/accounts/v1/:id', where :id stands for any segment, without query and slash at its end, and not '${path}'.`,
      );
    }
    if (typeof answer !== 'function') checkAnswer(answer);
    this.#routes.unshift({ method: method.toUpperCase(), path, answer });
  }

  /** @param path without query and without a slash at its end */
  find(request: RecordedRequest, path: string, query: URLSearchParams): Promise<SimulatedAnswer> | undefined {
    for (const { method, path: pattern, answer } of this.#routes) {
      const params = method === request.method ? matchPath(pattern, path) : undefined;
      if (params) return perform(`${method} ${pattern}`, answer, { ...request, params, query });
    }
    return undefined;
  }

  /** The methods that have an answer at this path. */
  methodsAt(path: string): string[] {
    const there = this.#routes.filter((route) => matchPath(route.path, path));
    return [...new Set(there.map(({ method }) => method))];
  }
}

/** @throws Error that names the route: its caller would look for a fault of the service */
async function perform(
  route: string,
  answer: SimulatorAnswerer,
  request: SimulatedRequest,
): Promise<SimulatedAnswer> {
  try {
    const made = typeof answer === 'function' ? await answer(request) : answer;
    checkAnswer(made);
    return { ...made, status: made.status ?? 200 };
  } catch (error) {
    const reason = isNativeError(error) ? error.message : inspect(error);
    throw new Error(`The simulator's route ${route} failed: ${reason}`, { cause: error });
  }
}

function checkAnswer(answer: SimulatorAnswer): void {
  const isObject = typeof answer === 'object' && answer !== null;
  const unknown = isObject ? Object.keys(answer).find((key) => !KEYS.includes(key)) : String(answer);
  if (unknown !== undefined) {
    throw new TypeError(
      `simulator.answer(): an answer is an object with ${KEYS.join(', ')}, and not with '${unknown}'. The content of a JSON answer stands in json.`,
    );
  }
  const { status = 200, json, body, headers = {} } = answer;
  if (json !== undefined && body !== undefined) {
    throw new TypeError('simulator.answer(): an answer has json or body, and not both.');
  }
  if (body !== undefined && typeof body !== 'string' && !isUint8Array(body)) {
    throw new TypeError(
      'simulator.answer(): body is text or bytes. What is to be sent as JSON stands in json.',
    );
  }
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  if (Number.isInteger(status) && status >= 200 && status <= 599) return;
  throw new TypeError(
    `simulator.answer(): a status is a whole number from 200 to 599, and not ${inspect(status)}.`,
  );
}
