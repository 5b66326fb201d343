import { validateHeaderName, validateHeaderValue } from 'node:http';
import { inspect } from 'node:util';
import { isNativeError, isUint8Array } from 'node:util/types';
import { type SimulatedAnswer } from './servers/answer.js';
import { type RecordedRequest } from './request-log.js';
import { type RequestQuery, RouteTable } from './route-table.js';

/** A request, as a function for `simulator.answer()` gets it. */
export interface SimulatedRequest extends RecordedRequest {
  /** By the names in the path, decoded: `{ id: 'a-1' }` for `/accounts/v1/{id}`. */
  readonly pathParams: Readonly<Record<string, string>>;
  /** The query; a list for a name that is repeated. */
  readonly params: RequestQuery;
  /** The body; parsed if it is JSON, undefined if there is none. */
  readonly data: unknown;
  /** The customers created in this environment, in order. */
  readonly customers: readonly SimulatedCustomer[];
}

/** A customer created on the simulator. */
export interface SimulatedCustomer {
  customer_id: string;
  app_user_id: string;
  created_at: string;
}

/** An answer to a call. */
export interface SimulatorAnswer {
  /** From 200 to 599. Default 200. */
  status?: number | undefined;
  /** Is serialised. */
  json?: unknown;
  /** Is sent as it is. */
  body?: string | Uint8Array | undefined;
  headers?: Record<string, string> | undefined;
}

/** An answer, or a function that makes one for each call. */
export type SimulatorAnswerer =
  SimulatorAnswer | ((request: SimulatedRequest) => SimulatorAnswer | Promise<SimulatorAnswer>);

/** Answers by method and path: `{ 'GET /accounts/v1/{id}': { json: { ... } } }`. */
export type SimulatorRoutes = Readonly<Record<string, SimulatorAnswerer>>;

const KEYS = ['status', 'json', 'body', 'headers'];

const PREFIX = 'simulator.answer(): ';

/** The answers of a test's own, by method and path. */
export class AnswerBook {
  readonly #table = new RouteTable<SimulatorAnswerer>();

  /** @throws TypeError for a method, path or status that no call can have, and for an answer with other keys, or both contents */
  add(method: string, path: string, answer: SimulatorAnswerer): void {
    try {
      if (typeof answer !== 'function') checkAnswer(answer);
      this.#table.add(method, path, answer);
    } catch (error) {
      throw new TypeError(PREFIX + (error as Error).message, { cause: error });
    }
  }

  /** @throws TypeError for a route that can answer nothing, with its method and path */
  addAll(routes: SimulatorRoutes): void {
    for (const [route, answer] of Object.entries(routes)) {
      const [method = '', path = '', ...more] = route.trim().split(/ +/);
      try {
        if (path === '' || more.length > 0) throw new TypeError('it is not a method, a space and a path.');
        this.add(method, path, answer);
      } catch (error) {
        const reason = (error as Error).message.replace(PREFIX, '');
        throw new TypeError(`${PREFIX}'${route}': ${reason}`, { cause: error });
      }
    }
  }

  /** @param path as on the wire, without query */
  find(
    request: RecordedRequest,
    path: string,
    params: RequestQuery,
    users: ReadonlyMap<string, SimulatedCustomer>,
  ): Promise<SimulatedAnswer> | undefined {
    const found = this.#table.find(request.method, path);
    if (!found) return undefined;
    const { route, value, pathParams } = found;
    return perform(route, value, {
      ...request,
      pathParams,
      params,
      data: request.json ?? (request.body || undefined),
      customers: [...users.values()],
    });
  }

  /** The methods that have an answer at this path. */
  methodsAt(path: string): string[] {
    return this.#table.methodsAt(path);
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
      `an answer is an object with ${KEYS.join(', ')}, and not with '${unknown}'. The content of a JSON answer stands in json.`,
    );
  }
  const { status = 200, json, body, headers = {} } = answer;
  if (json !== undefined && body !== undefined)
    throw new TypeError('an answer has json or body, and not both.');
  if (body !== undefined && typeof body !== 'string' && !isUint8Array(body)) {
    throw new TypeError('body is text or bytes. What is to be sent as JSON stands in json.');
  }
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`a status is a whole number from 200 to 599, and not ${inspect(status)}.`);
  }
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
}
