import { type AnswerFault, type ConnectionFault, type RecordedRequest } from 'nestjs-service/testing';

/**
 * Shows in every client secret, app token and access token, and in private keys. Of the first two only the beginning, as a
 * text that has 8 characters of one secret is not shown, whichever other it has too.
 */
export const SECRET = /S3cr3t|AppTok|eyJhbGciOi|PRIVATE KEY|MIGHAgEAMBMG|Bearer /;

/** The secrets of a request, in the forms in which a badly written service might repeat them. */
export function secretsOf({ headers, form }: RecordedRequest): string {
  return [...Object.values(headers), form?.client_secret].filter((value) => SECRET.test(value ?? '')).join();
}

/** Faults of one attempt. `sent` are the secrets of this request, and `elsewhere` is the address of another service. */
export const API_FAULTS = {
  lost: () => 'lost',
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
  echo: (sent) => ({
    status: 422,
    json: quote(sent, 'status', 'message'),
    headers: quote(sent, 'retry-after'),
  }),
  redirect: (_, elsewhere) => ({ status: 302, headers: { location: elsewhere } }),
} satisfies Record<string, (sent: () => string, elsewhere: string) => AnswerFault>;

/** Faults of the token endpoint. */
export const TOKEN_FAULTS = {
  lost: () => 'lost',
  reset: () => 'reset',
  truncate: () => 'truncate',
  hang: () => 'hang',
  late: () => ({ delayMs: 300 }),
  'in trouble': () => ({ status: 503 }),
  busy: () => ({ status: 429, headers: { 'retry-after': '1' } }),
  refused: (sent) => ({ status: 400, json: quote(sent, 'error', 'error_description') }),
  'short-lived': () => ({ tokenResponse: { expires_in: 1 } }),
  'of another scope': () => ({ tokenResponse: { scope: 'customer.c-9' } }),
  'not a token': (sent) => ({ tokenResponse: quote(sent, 'access_token') }),
} satisfies Record<string, (sent: () => string) => AnswerFault>;

export const CONNECTION_FAULTS = {
  'reset handshake': 'reset-handshake',
  'bad certificate': { tlsAlert: 'bad_certificate' },
  'unknown authority': { tlsAlert: 'unknown_ca' },
} satisfies Record<string, ConnectionFault>;

/** Fields that are computed when the response is sent. */
function quote(sent: () => string, ...fields: string[]): Record<string, string> {
  const get = () => `quoted: ${sent()}`;
  return Object.defineProperties(
    {},
    Object.fromEntries(fields.map((field) => [field, { get, enumerable: true }])),
  );
}
