import { type AnswerFault, type ConnectionFault, type ServiceSimulator } from 'nestjs-service/testing';

/** Shows in every client secret, app token and access token of a history, and in its private keys. */
export const SECRET = /secret-of-|app-token-of-|eyJhbGciOi|PRIVATE KEY|MIGHAgEAMBMG|Bearer /;

/** Names of the faults of a call's attempt. Some quote the secrets of the service itself. */
export const API_FAULTS = {
  reset: () => 'reset',
  'reset after headers': () => 'reset-after-headers',
  truncate: () => 'truncate',
  hang: () => 'hang',
  page: () => 'html',
  empty: () => 'empty',
  bomb: () => ({ gzipBombBytes: 200_000 }),
  trickle: () => ({ trickleMs: 20 }),
  late: () => ({ delayMs: 120 }),
  'very late': () => ({ delayMs: 700 }),
  'in trouble': () => ({ status: 503 }),
  busy: () => ({ status: 429 }),
  'busy for 1 s': () => ({ status: 429, headers: { 'retry-after': '1' } }),
  unauthorized: () => ({ status: 401, json: { status: 'UNAUTHORIZED', message: 'no' } }),
  echo: ({ appToken, clientSecret }) => ({
    status: 422,
    json: { status: appToken, message: `${clientSecret} and ${appToken}` },
    headers: { 'retry-after': appToken },
  }),
  redirect: (_, other) => ({ redirect: `${other.urls.baseUrl}/banks/v1` }),
} satisfies Record<string, (own: ServiceSimulator, other: ServiceSimulator) => AnswerFault>;

/** Faults of the token endpoint. */
export const TOKEN_FAULTS = {
  reset: () => 'reset',
  truncate: () => 'truncate',
  hang: () => 'hang',
  late: () => ({ delayMs: 300 }),
  'in trouble': () => ({ status: 503 }),
  busy: () => ({ status: 429, headers: { 'retry-after': '1' } }),
  refused: ({ clientSecret }) => ({
    status: 400,
    json: { error: 'invalid_request', error_description: clientSecret },
  }),
  'short-lived': () => ({ tokenResponse: { expires_in: 1 } }),
  'of another scope': () => ({ tokenResponse: { scope: 'customer.c-9' } }),
  'not a token': ({ clientSecret }) => ({ tokenResponse: { access_token: `${clientSecret}\r\n` } }),
} satisfies Record<string, (own: ServiceSimulator) => AnswerFault>;

export const CONNECTION_FAULTS = {
  'reset handshake': 'reset-handshake',
  'bad certificate': { tlsAlert: 'bad_certificate' },
  'unknown authority': { tlsAlert: 'unknown_ca' },
} satisfies Record<string, ConnectionFault>;
