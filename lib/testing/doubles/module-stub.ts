import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceAuthService } from '../../auth/service-auth.service.js';
import { type DescribeOption } from '../../errors/index.js';
import { type ExchangeRequest } from '../../exchange/exchange.types.js';
import { parseJson } from '../../exchange/decode.js';
import { daysLeft } from '../../tls/certificate-summary.js';
import { type ClientIdentity, type Identity, type IdentityStatus } from '../../tls/client-identity.js';
import { completeError } from './about-call.js';
import { defaultAnswer } from './default-answers.js';
import {
  DOUBLED,
  type Doubled,
  type RecordedCall,
  type ServiceDoubles,
  type StubbedRequest,
  type StubbedResponse,
} from './doubles.js';

type AnswerFunction = (...args: unknown[]) => unknown;

/** A call of a double that is under way, for the bottom of its HTTP client. */
interface RunningCall {
  service: Doubled;
  method: string;
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
  double<T extends object>(service: Doubled, real: T, describeOption: DescribeOption): T {
    const methods = real as Record<string, AnswerFunction>;
    for (const method of DOUBLED[service]) {
      const run = methods[method].bind(real);
      const isAsync = method !== 'invalidate';
      const value = (...args: unknown[]) =>
        isAsync
          ? this.#call(service, method, args, () => run(...args), describeOption)
          : this.#invalidate(args, run);
      Object.defineProperty(real, method, { value, writable: true, configurable: true });
    }
    return real;
  }

  /** The identity with the certificate and status of the doubles. */
  doubleIdentity(identity: ClientIdentity): Identity {
    return new Proxy(identity, {
      get: (_, key) => {
        if (key === 'certificate') return this.doubles.auth?.certificate;
        if (key === 'status') return this.#identityStatus;
        const value: unknown = Reflect.get(identity, key);
        return typeof value === 'function' ? (value.bind(identity) as unknown) : value;
      },
    });
  }

  /** Health checks ask the double of a test, where there is one. */
  doubleHealth(auth: ServiceAuthService): void {
    const real = Object.getOwnPropertyDescriptor(ServiceAuthService.prototype, 'apiTokenStatus');
    const get = (): unknown => (this.doubles.auth?.getApiToken ? undefined : real?.get?.call(auth));
    Object.defineProperty(auth, 'apiTokenStatus', { get });
  }

  get #identityStatus(): IdentityStatus {
    const { identityStatus, certificate } = this.doubles.auth ?? {};
    if (identityStatus || !certificate) return identityStatus ?? { healthy: true };
    return { healthy: true, certificate, daysLeft: daysLeft(certificate, Date.now()) };
  }

  #invalidate(args: unknown[], run: AnswerFunction): void {
    this.record('auth', 'invalidate', args);
    run(...args);
    this.doubles.auth?.invalidate?.(args[0] as string);
  }

  /** Without answers of a test, and with the first customer next. */
  reset(): void {
    this.doubles = {};
    this.#customers = 0;
  }

  record(service: Doubled, method: string, args: readonly unknown[]): void {
    this.#calls.push({
      method: `${service}.${method}`,
      args,
      ...(this.#name === undefined ? {} : { module: this.#name }),
    });
  }

  /** The answer to a call whose input was checked. */
  answer(call: ExchangeRequest): Promise<StubbedResponse | undefined> {
    const running = this.#running.getStore();
    // The function of a host may call doubles in turn: these are calls of their own.
    return this.#running.run(undefined, async () =>
      running?.answer ? { data: await running.answer() } : this.#answerCall(call, running),
    );
  }

  async #call(
    service: Doubled,
    method: string,
    args: unknown[],
    run: () => unknown,
    describeOption: DescribeOption,
  ): Promise<unknown> {
    // A part of the call that is recorded: `banks.list` calls `http.get`, which calls `http.request`.
    if (service === 'http' && this.#running.getStore()) return run();
    this.record(service, method, args);
    const given = (this.doubles[service] as Record<string, AnswerFunction> | undefined)?.[method];
    // Those of `request` and `response` have other arguments than the methods.
    const hasOwnArguments = service === 'http' && (method === 'request' || method === 'response');
    const answer = given && !hasOwnArguments ? () => given(...args) : undefined;
    if (service !== 'auth' && service !== 'sdk') return this.#running.run({ service, method, answer }, run);
    const usual = await run();
    if (!answer) return usual;
    try {
      return await this.#running.run(undefined, answer);
    } catch (error) {
      throw completeError(error, describeOption);
    }
  }

  async #answerCall(
    call: ExchangeRequest,
    running: RunningCall | undefined,
  ): Promise<StubbedResponse | undefined> {
    const { method, url, headers, body } = call;
    const path = url.pathname + url.search;
    const request: StubbedRequest = { method, headers: shown(headers), data: parsed(body) };
    const isResource = running !== undefined && running.service !== 'http';
    // Called on axiosRef or httpService.
    if (!running) this.record('http', 'request', [path, request]);
    const given = isResource ? undefined : this.doubles.http;
    if (given?.response && running?.method === 'response') return given.response(path, request);
    const usual = () => defaultAnswer(url.pathname, request, () => (this.#customers += 1));
    return { data: await (given?.request ? given.request(path, request) : usual()) };
  }
}

function shown({
  authorization: _,
  'user-agent': __,
  ...headers
}: ExchangeRequest['headers']): Record<string, string> {
  return headers;
}

function parsed(body: string | Uint8Array | undefined): unknown {
  return typeof body === 'string' ? (parseJson(body) ?? body) : body;
}
