import { AsyncLocalStorage } from 'node:async_hooks';
import { type Call } from '../../http/call.js';
import { parseJson } from '../../exchange/json.js';
import { defaultAnswer } from './default-answers.js';
import { DOUBLED, type RecordedCall, type ServiceDoubles, type StubbedRequest } from './doubles.js';

type Service = keyof typeof DOUBLED;
type AnswerFunction = (...args: unknown[]) => unknown;

/** A call of a double that is under way, for the bottom of its HTTP client. */
interface RunningCall {
  service: Service;
  answer?: () => unknown;
}

/** The doubles of one ServiceModule: their answers, and the record of their calls. */
export class ModuleStub {
  doubles: ServiceDoubles = {};
  readonly #name: string | undefined;
  readonly #calls: RecordedCall[];
  /** A method's own function is found at the bottom, so that all between is what it is in real life. */
  readonly #running = new AsyncLocalStorage<RunningCall | undefined>();
  #customers = 0;

  /** @param calls those of all modules */
  constructor(name: string | undefined, calls: RecordedCall[]) {
    this.#name = name;
    this.#calls = calls;
  }

  /** Makes the methods of a real service record their calls and answer by the doubles. */
  double<T extends object>(service: Service, real: T): T {
    const methods = real as Record<string, AnswerFunction>;
    for (const method of DOUBLED[service]) {
      const run = methods[method].bind(real);
      const value = (...args: unknown[]) => this.#call(service, method, args, () => run(...args));
      Object.defineProperty(real, method, { value, writable: true, configurable: true });
    }
    return real;
  }

  /** Without answers of a test, and with the first customer next. */
  reset(): void {
    this.doubles = {};
    this.#customers = 0;
  }

  record(service: Service, method: string, args: readonly unknown[]): void {
    this.#calls.push({
      method: `${service}.${method}`,
      args,
      ...(this.#name === undefined ? {} : { module: this.#name }),
    });
  }

  /** The answer to a call whose input was checked. */
  answer(call: Call): unknown {
    const running = this.#running.getStore();
    // The function of a host may call doubles in turn: these are calls of their own.
    return this.#running.run(undefined, running?.answer ?? (() => this.#answerCall(call, running)));
  }

  async #call(service: Service, method: string, args: unknown[], run: () => unknown): Promise<unknown> {
    // A part of the call that is recorded: `banks.list` calls `http.get`, which calls `http.request`.
    if (service === 'http' && this.#running.getStore()) return run();
    this.record(service, method, args);
    const given = (this.doubles[service] as Record<string, AnswerFunction> | undefined)?.[method];
    // That of `request` has other arguments than the method.
    const answer = given && method !== 'request' ? () => given(...args) : undefined;
    if (service !== 'auth' && service !== 'sdk') return this.#running.run({ service, answer }, run);
    const usual = await run();
    return answer ? this.#running.run(undefined, answer) : usual;
  }

  #answerCall(call: Call, running: RunningCall | undefined): unknown {
    const { method, url, headers, body } = call;
    const path = url.pathname + url.search;
    const request: StubbedRequest = { method, headers: shown(headers), data: parsed(body) };
    const isResource = running !== undefined && running.service !== 'http';
    // Called on axiosRef or httpService.
    if (!running) this.record('http', 'request', [path, request]);
    const given = isResource ? undefined : this.doubles.http?.request;
    return given ? given(path, request) : defaultAnswer(url.pathname, request, () => (this.#customers += 1));
  }
}

function shown({ authorization: _, ...headers }: Record<string, string>): Record<string, string> {
  return headers;
}

function parsed(body: string | Uint8Array | undefined): unknown {
  return typeof body === 'string' ? (parseJson(body) ?? body) : body;
}
