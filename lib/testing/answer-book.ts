import { validateHeaderName, validateHeaderValue } from 'node:http';
import { inspect } from 'node:util';
import { isNativeError, isUint8Array } from 'node:util/types';
import { type SimulatedAnswer } from './servers/answer.js';
import { type RecordedRequest } from './request-log.js';
import { type RequestQuery, RouteTable } from './route-table.js';

/** The request that a function of `simulator.answer()` receives. */
export interface SimulatedRequest extends RecordedRequest {
  /** The path parameters, decoded: `{ id: 'a-1' }` for `/accounts/v1/{id}`. */
  readonly pathParams: Readonly<Record<string, string>>;
  /** The query parameters. One that occurs several times is a list. */
  readonly params: RequestQuery;
  /** The body: parsed if it is JSON, otherwise text. Undefined without a body. */
  readonly data: unknown;
  /** The customers of this environment, in the order of their creation. */
  readonly customers: readonly SimulatedCustomer[];
}

/** A customer created on the simulator. */
export interface SimulatedCustomer {
  customer_id: string;
  app_user_id: string;
  created_at: string;
}

/** A response to a call. */
export interface SimulatorAnswer {
  /** From 200 to 599. Default: 200. */
  status?: number | undefined;
  /** A value that is sent as JSON. Either this or `body`. */
  json?: unknown;
  /** Text or bytes that are sent unchanged. Either this or `json`. */
  body?: string | Uint8Array | undefined;
  headers?: Record<string, string> | undefined;
}

/** A response, or a function that returns one for each call. */
export type SimulatorAnswerer =
  SimulatorAnswer | ((request: SimulatedRequest) => SimulatorAnswer | Promise<SimulatorAnswer>);

/** Answers by method and path: `{ 'GET /accounts/v1/{id}': { json: { ... } } }`. */
export type SimulatorRoutes = Readonly<Record<string, SimulatorAnswerer>>;

const ANSWER_KEYS = ['status', 'json', 'body', 'headers'];

const PREFIX = 'simulator.answer(): ';

/** The responses that a test has added with `simulator.answer()`. */
export class AnswerBook {
  readonly #table = new RouteTable<SimulatorAnswerer>();

  /** @throws TypeError for an invalid method, path or response */
  add(method: string, path: string, answer: SimulatorAnswerer): void {
    try {
      if (typeof answer !== 'function') checkAnswer(answer);
      this.#table.add(method, path, answer);
    } catch (error) {
      throw new TypeError(PREFIX + (error as Error).message, { cause: error });
    }
  }

  /** @throws TypeError that names the invalid route */
  addAll(routes: SimulatorRoutes): void {
    for (const [route, answer] of Object.entries(routes)) {
      const [method = '', path = '', ...more] = route.trim().split(/ +/);
      try {
        if (path === '' || more.length > 0) throw new TypeError('must be a method, a space and a path.');
        this.add(method, path, answer);
      } catch (error) {
        const reason = (error as Error).message.replace(PREFIX, '');
        throw new TypeError(`${PREFIX}'${route}': ${reason}`, { cause: error });
      }
    }
  }

  /** @param path the path as it was sent, without the query */
  find(
    request: RecordedRequest,
    path: string,
    params: RequestQuery,
    users: ReadonlyMap<string, SimulatedCustomer>,
  ): Promise<SimulatedAnswer> | undefined {
    const found = this.#table.find(request.method, path);
    if (!found) return undefined;
    const { route, value, pathParams } = found;
    return runAnswerer(route, value, {
      ...request,
      pathParams,
      params,
      data: request.json ?? (request.body || undefined),
      customers: [...users.values()],
    });
  }

  methodsAt(path: string): string[] {
    return this.#table.methodsAt(path);
  }
}

/** @throws Error that names the route, so that a mistake in a test's function is not taken for a fault of the client */
async function runAnswerer(
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
  const unknown = isObject ? Object.keys(answer).find((key) => !ANSWER_KEYS.includes(key)) : String(answer);
  if (unknown !== undefined) {
    throw new TypeError(
      `an answer has only ${ANSWER_KEYS.join(', ')}, and not '${unknown}'. Put the content of a JSON answer into json.`,
    );
  }
  const { status = 200, json, body, headers = {} } = answer;
  if (json !== undefined && body !== undefined)
    throw new TypeError('an answer has either json or body, and not both.');
  if (body !== undefined && typeof body !== 'string' && !isUint8Array(body)) {
    throw new TypeError('body must be text or bytes. To send JSON, use json.');
  }
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`status must be a whole number from 200 to 599, not ${inspect(status)}.`);
  }
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
}
