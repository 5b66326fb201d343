import { afterEach } from '@jest/globals';
import { Agent, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { type WaitOptions } from '../../../lib/auth/cache/waiting-callers.js';
import { Secret } from '../../../lib/config/secret.js';
import { type ReloadableIdentity } from '../../../lib/exchange/certificate-refusal.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { type Exchange } from '../../../lib/exchange/exchange.types.js';
import { type ResolvedOptions } from '../../../lib/config/resolved-options.js';
import { AuthHeadersInterceptor } from '../../../lib/http/auth-headers.interceptor.js';
import { serviceAdapter } from '../../../lib/http/service-adapter.js';
import { CallObserver } from '../../../lib/http/call-observer.js';
import { CallRunner } from '../../../lib/http/call-runner.js';
import { CallsInFlight } from '../../../lib/http/calls-in-flight.js';
import { RetryBudget } from '../../../lib/http/retry-policy.js';
import { createServiceAxios } from '../../../lib/http/service-axios.js';
import { Telemetry } from '../../../lib/telemetry/telemetry.js';
import { httpServer } from '../../helpers/loopback.js';

export const APP_TOKEN = 'app-token-planted';
export const BEARER = 'bearer-planted';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Runs when the test is over. */
export const afterwards = (close: () => Promise<void> | void): void => void closing.push(close);

export interface Arrived {
  method?: string;
  url?: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export interface Setup {
  listener?: RequestListener;
  baseUrl?: string;
  renewed?: Record<string, string> | Error;
  /** Whether the token of `renewed` is one of a shared store. */
  isFromStore?: boolean;
  retries?: number;
  idempotencyHeader?: string;
  timeoutMs?: number;
  through?: Exchange;
  budget?: RetryBudget;
  /** Of the wait before a retry, in [0, 1). Default 0: no wait. */
  random?: number;
  agent?: Agent;
  identity?: ReloadableIdentity;
  /** What is sent with a call. Default: a bearer and the app token. */
  credentials?: Record<string, string>;
  /** No token yet: it has to be waited for. */
  cold?: (wait: WaitOptions) => Promise<void>;
}

/** The module's axios over a real server and a real exchange; what is above and beside it is made up. */
export async function setUp(setup: Setup = {}) {
  const arrived: Arrived[] = [];
  const server = await httpServer((request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      const { method, url, headers } = request;
      arrived.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      (setup.listener ?? ((_, answer: ServerResponse) => answer.end('{"ok":true}')))(request, response);
    });
  });
  const agent = setup.agent ?? new Agent({ keepAlive: true });
  closing.push(server.close, () => agent.destroy());
  const baseUrl = setup.baseUrl ?? server.url;
  const inFlight = new CallsInFlight();
  const silent = { debug: () => undefined, warn: () => undefined };
  const renewals: Readonly<Record<string, string>>[] = [];
  const runner = new CallRunner({
    exchange: setup.through ?? exchange,
    authenticator: {
      renew: async (refused) => {
        renewals.push({ ...refused });
        if (setup.renewed instanceof Error) throw setup.renewed;
        return setup.renewed && { credentials: setup.renewed, isFromStore: setup.isFromStore ?? false };
      },
    },
    identity: Object.assign(setup.identity ?? { reloadAfterRefusal: async () => false }, {
      agentFor: () => agent,
      hasChain: false,
    }),
    budget: setup.budget ?? new RetryBudget(),
    http: { retries: setup.retries ?? 2, connectTimeout: 5_000, maxResponseBytes: 10_000 },
    baseOption: 'urls.baseUrl',
    random: () => setup.random ?? 0,
    closed: inFlight.closed,
  });
  const both = { Authorization: `Bearer ${BEARER}`, 'service-app-token': APP_TOKEN };
  const headers = setup.credentials ?? both;
  const source = {
    use: () => (setup.cold ? undefined : headers),
    get: async (_origin: string, wait = {}) => {
      await setup.cold?.(wait);
      return headers;
    },
  };
  const options = {
    addresses: { baseUrl, origins: new Set([new URL(baseUrl).origin]) },
    appTokenHeader: 'service-app-token',
    appToken: new Secret(APP_TOKEN),
    http: {
      timeout: setup.timeoutMs ?? 20_000,
      correlationIdHeader: 'x-correlation-id',
      idempotencyHeader: setup.idempotencyHeader,
    },
  } as unknown as ResolvedOptions;
  const observer = new CallObserver(new Telemetry(), silent, '', { fullPaths: false });
  const authHeaders = new AuthHeadersInterceptor(options, source, inFlight, observer);
  const credentials = {
    authentication: 'mtls' as const,
    baseOption: 'urls.baseUrl',
    certificate: () => undefined,
  };
  const adapter = serviceAdapter(options, authHeaders, runner, observer, inFlight, credentials);
  const axios = createServiceAxios(authHeaders, adapter);
  return { axios, arrived, inFlight, renewals, server, agent };
}

/** Answers with these statuses, then with success. */
export const failing = (...statuses: number[]): RequestListener => {
  const left = [...statuses];
  return (_, response) => {
    const status = left.shift();
    if (status === undefined) response.end('{"ok":true}');
    else
      response
        .writeHead(status)
        .end(JSON.stringify({ status: `S${status}`, message: `failed with ${status}` }));
  };
};

export const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => Promise.reject(new Error(`it did not fail: ${inspect(value)}`)),
    (error: unknown) => error,
  );

/** All that a host could find in a value. */
export const everything = (value: unknown): string => inspect(value, { depth: 20, showHidden: true });
