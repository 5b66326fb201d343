import { afterEach } from '@jest/globals';
import { Agent, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { type WaitOptions } from '../../../lib/auth/access-token.js';
import { Secret } from '../../../lib/config/secret.js';
import { systemIo } from '../../../lib/engine/create-client.js';
import { type Identity } from '../../../lib/tls/client-identity.js';
import { exchange } from '../../../lib/exchange/exchange.js';
import { type ExchangeRequest } from '../../../lib/exchange/io.js';
import { type HttpSettings, type ResolvedOptions } from '../../../lib/config/resolve-options.js';
import { CallsInFlight } from '../../../lib/auth/calls-in-flight.js';
import { type CallAuthenticator, type ClientContext } from '../../../lib/http/call.js';
import { type RetryBudget } from '../../../lib/http/repeatability.js';
import { createServiceAxios } from '../../../lib/http/service-axios.js';
import { SILENT } from '../../../lib/telemetry/telemetry.js';
import { exchangeDouble, type GivenAnswer } from '../../../lib/testing/doubles/exchange-double.js';
import { httpServer } from '../../helpers/loopback.js';
import { unchanging } from '../../helpers/rotating-certificate.js';

export const APP_TOKEN = 'app-token-planted';
export const BEARER = 'bearer-planted';

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Functions that run after the test. */
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
  retries?: number;
  idempotencyHeader?: string;
  onCall?: HttpSettings['onCall'];
  timeoutMs?: number;
  /** Makes the responses. The client then sends nothing to the server. */
  answer?: (request: ExchangeRequest) => GivenAnswer | Promise<GivenAnswer>;
  budget?: RetryBudget;
  /** The random number for the pause before a retry, in [0, 1). Default 0: no pause. */
  random?: number;
  agent?: Agent;
  identity?: Partial<Identity>;
  /** The headers that authenticate a call. Default: a bearer token and the app token. */
  credentials?: Record<string, string>;
  /** Returns the current headers, in place of `credentials`. */
  credentialsNow?: () => Record<string, string>;
  /** No token is cached: a call waits until this function resolves. */
  cold?: (wait: WaitOptions) => Promise<void>;
}

/** The double `answer` needs none. */
const NO_SERVER = { url: 'http://127.0.0.1:9', close: async () => undefined };

type Made<T> = { [Key in keyof T]?: Partial<T[Key]> };

/** The options and parts of a client under test. Each part that is left out gets a default that does nothing unusual. */
export function clientOf(
  options: Made<ResolvedOptions> = {},
  parts: Made<ClientContext> = {},
): ClientContext {
  const baseUrl = 'https://api.example';
  return {
    calls: new CallsInFlight(),
    identity: {},
    ...parts,
    io: { ...systemIo(SILENT), random: () => 0, ...parts.io },
    options: {
      authentication: 'mtls',
      appTokenHeader: 'service-app-token',
      describeOption: String,
      ...options,
      addresses: { baseUrl, baseOption: 'urls.baseUrl', origins: new Set([baseUrl]), ...options.addresses },
      http: {
        timeout: 2_000,
        retries: 2,
        connectTimeout: 5_000,
        maxResponseBytes: 10_000,
        correlationIdHeader: 'x-correlation-id',
        userAgent: 'spec/1',
        ...options.http,
      },
    },
  } as unknown as ClientContext;
}

/** Makes the module's axios instance over a real server, or over the double `answer`. The other parts of the client are doubles. */
export async function setUp(setup: Setup = {}) {
  const arrived: Arrived[] = [];
  const listen: RequestListener = (request, response) => {
    void request.toArray().then((chunks: Buffer[]) => {
      const { method, url, headers } = request;
      arrived.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      (setup.listener ?? ((_, answer: ServerResponse) => answer.end('{"ok":true}')))(request, response);
    });
  };
  const server = setup.answer ? NO_SERVER : await httpServer(listen);
  const { identity = {} } = setup;
  const agent = setup.agent ?? new Agent({ keepAlive: true });
  closing.push(server.close, () => agent.destroy());
  const baseUrl = setup.baseUrl ?? server.url;
  const inFlight = new CallsInFlight();
  const renewals: Readonly<Record<string, string>>[] = [];
  const both = { Authorization: `Bearer ${BEARER}`, 'service-app-token': APP_TOKEN };
  let credentials: Readonly<Record<string, string>> = setup.credentials ?? both;
  const authenticator: CallAuthenticator = {
    getCached: () => (setup.cold ? undefined : (setup.credentialsNow?.() ?? credentials)),
    get: async (wait) => {
      await setup.cold?.(wait ?? {});
      return credentials;
    },
    areStillValid: () => true,
    replace: async (refused) => {
      renewals.push({ ...refused });
      if (setup.renewed instanceof Error) throw setup.renewed;
      credentials = setup.renewed ?? credentials;
      return setup.renewed;
    },
  };
  const axios = createServiceAxios(
    clientOf(
      {
        addresses: { baseUrl, baseOption: 'urls.baseUrl', origins: new Set([new URL(baseUrl).origin]) },
        appToken: new Secret(APP_TOKEN),
        http: {
          timeout: setup.timeoutMs ?? 20_000,
          retries: setup.retries ?? 2,
          onCall: setup.onCall,
          idempotencyHeader: setup.idempotencyHeader ?? 'idempotency-key',
        },
      },
      {
        identity: Object.assign(identity, {
          ...unchanging(identity.findOther),
          ...(identity.rotation && { rotation: identity.rotation }),
          agentFor: () => agent,
          preconnectDuring: <T>(_: unknown, token: () => Promise<T>) => token(),
          hasChain: false,
        }),
        io: {
          exchange: setup.answer ? exchangeDouble(setup.answer) : exchange,
          random: () => setup.random ?? 0,
        },
        calls: inFlight,
      },
    ),
    authenticator,
    setup.budget,
  );
  return { axios, arrived, inFlight, renewals, server, agent };
}

/** Handles the first request with this listener, and all later ones with success. */
export const firstAnswered = (
  status: number,
  headers: Record<string, string>,
  body: string,
): RequestListener => {
  let isFirst = true;
  return (_, response) => {
    if (isFirst) response.writeHead(status, headers).end(body);
    else response.end('{"ok":true}');
    isFirst = false;
  };
};

/** Responds with these statuses, one for each request, and then with success. */
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

/**
 * Every text form of a value that a host application could log. `compact: false`, because to lay out arrays in columns takes
 * most of the time.
 */
export const everything = (value: unknown): string =>
  inspect(value, { depth: 20, showHidden: true, compact: false, breakLength: Infinity });

/** Some text forms of a value in which a host could find a credential. All of them would take jest minutes. */
export const plantedIn = (value: unknown): string[] => {
  const parts = everything(value).split('planted').slice(0, -1);
  return parts.slice(0, 5).map((before) => `${before.slice(-60)}planted`);
};
