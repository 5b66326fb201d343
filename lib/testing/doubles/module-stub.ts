import { AsyncLocalStorage } from 'node:async_hooks';
import { type Service } from '../../engine/create-service.js';
import { parseJson } from '../../exchange/decode.js';
import { type ExchangeRequest } from '../../exchange/exchange.types.js';
import { daysLeft } from '../../tls/certificate-summary.js';
import { type IdentityStatus } from '../../tls/client-identity.js';
import { defaultAnswer } from './default-answers.js';
import {
  DOUBLED,
  type Doubled,
  type RecordedCall,
  type ServiceDoubles,
  type StubbedRequest,
} from './doubles.js';
import { type GivenAnswer } from './exchange-double.js';
import { answerOf } from './service-errors.js';

type Method = (...args: unknown[]) => unknown;

/** A call of a double that is under way, for the exchange below it. */
interface RunningCall {
  service: Doubled;
  method: string;
  answer?: () => unknown;
}

/** The doubles of one client: their answers, and the record of their calls. */
export class ModuleStub {
  doubles: ServiceDoubles = {};
  readonly #name: string | undefined;
  readonly #calls: RecordedCall[];
  /** A method's own function is called by the exchange, so that all between is what it is in real life. */
  readonly #running = new AsyncLocalStorage<RunningCall | undefined>();
  #customers = 0;

  /** @param calls those of all clients */
  constructor(name: string | undefined, calls: RecordedCall[]) {
    this.#name = name;
    this.#calls = calls;
  }

  /** Makes the methods of a real client record their calls and answer by the doubles. */
  double(client: Service): void {
    for (const service of Object.keys(DOUBLED) as Doubled[]) {
      const methods = client[service] as unknown as Record<string, Method>;
      for (const method of DOUBLED[service]) {
        const run = methods[method].bind(methods);
        methods[method] = (...args) => this.#call(service, method, args, () => run(...args));
      }
    }
    const { auth } = client;
    const usual = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(auth), 'apiTokenStatus');
    Object.defineProperties(auth, {
      certificate: { get: () => this.doubles.auth?.certificate },
      identityStatus: { get: () => this.#identityStatus },
      // Health checks ask the double of a test, where there is one.
      apiTokenStatus: {
        get: () => (this.doubles.auth?.getApiToken ? undefined : (usual?.get?.call(auth) as unknown)),
      },
    });
  }

  /** Without answers of a test, and with the first customer next. */
  reset(): void {
    this.doubles = {};
    this.#customers = 0;
  }

  /** The answer to a call whose input was checked. */
  answer(request: ExchangeRequest): Promise<GivenAnswer> {
    const running = this.#running.getStore();
    // The function of a host may call doubles in turn: these are calls of their own.
    return this.#running.run(undefined, async () => {
      try {
        return running?.answer ? { data: await running.answer() } : await this.#answerHttp(request, running);
      } catch (error) {
        return answerOf(error);
      }
    });
  }

  get #identityStatus(): IdentityStatus {
    const { identityStatus, certificate } = this.doubles.auth ?? {};
    if (identityStatus || !certificate) return identityStatus ?? { healthy: true };
    return { healthy: true, certificate, daysLeft: daysLeft(certificate, Date.now()) };
  }

  #record(service: Doubled, method: string, args: readonly unknown[]): void {
    const module = this.#name === undefined ? {} : { module: this.#name };
    this.#calls.push({ method: `${service}.${method}`, args, ...module });
  }

  #call(service: Doubled, method: string, args: unknown[], run: () => unknown): unknown {
    // A part of the call that is recorded: `banks.list` calls `http.get`, which calls `http.request`.
    if (service === 'http' && this.#running.getStore()) return run();
    this.#record(service, method, args);
    const given = (this.doubles[service] as Record<string, Method> | undefined)?.[method];
    // Those of `request` and `response` have other arguments than the methods.
    const hasOwnArguments = service === 'http' && (method === 'request' || method === 'response');
    const answer = given && !hasOwnArguments ? () => given(...args) : undefined;
    if (service !== 'auth' && service !== 'sdk') return this.#running.run({ service, method, answer }, run);
    const usual = run();
    if (!answer) return usual;
    if (method === 'invalidate') return void answer();
    return Promise.resolve(usual).then(() => this.#running.run(undefined, answer));
  }

  async #answerHttp(
    { method, url, headers, body }: ExchangeRequest,
    running: RunningCall | undefined,
  ): Promise<GivenAnswer> {
    const path = url.pathname + url.search;
    const { authorization: _, 'user-agent': __, ...shown } = headers;
    const data = typeof body === 'string' ? (parseJson(body) ?? body) : body;
    const request: StubbedRequest = { method, headers: shown, data };
    // Called on axiosRef or httpService.
    if (!running) this.#record('http', 'request', [path, request]);
    const given = running && running.service !== 'http' ? undefined : this.doubles.http;
    if (given?.response && running?.method === 'response') return given.response(path, request);
    const usual = () => defaultAnswer(url.pathname, request, () => (this.#customers += 1));
    return { data: await (given?.request ? given.request(path, request) : usual()) };
  }
}
