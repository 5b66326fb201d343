import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ConsoleLogger, HttpException, Logger, type ArgumentsHost } from '@nestjs/common';
import { inspect } from 'node:util';
import { lastValueFrom, type Observable } from 'rxjs';
import {
  type ConnectionErrorKind,
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceError,
  ServiceRequestError,
  ServiceTokenError,
  describeError,
} from '../../../lib/errors/index.js';
import { answerOf, type ExceptionAnswer, toHttpException } from '../../../lib/http/exception-answer.js';
import { ServiceExceptionFilter } from '../../../lib/http/service-exception.filter.js';

const error = new ServiceRequestError([{ property: 'path', message: 'must be a string' }]);
const answer = {
  status: 'error',
  statusCode: 400,
  message: 'path must be a string',
  code: 'invalid_request',
  cause: { pattern: 'ask' },
};

const onGateway = (client: unknown): ArgumentsHost =>
  ({
    getType: () => 'ws',
    switchToWs: () => ({ getClient: () => client, getPattern: () => 'ask' }),
  }) as unknown as ArgumentsHost;

describe('the exception filter on a WebSocket gateway', () => {
  it.each([
    ['open', 1, [[JSON.stringify({ event: 'exception', data: answer })]]],
    ['closing', 2, []],
    ['closed', 3, []],
  ])('writes to a WebSocket that is open, and to no other: %s', (_, readyState, sent) => {
    const client = { readyState, send: jest.fn(), emit: jest.fn() };
    new ServiceExceptionFilter().catch(error, onGateway(client));
    expect(client.send.mock.calls).toEqual(sent);
    expect(client.emit).not.toHaveBeenCalled();
  });

  it('emits the event to a client of socket.io, and takes a client that is gone', () => {
    const client = { emit: jest.fn() };
    new ServiceExceptionFilter().catch(error, onGateway(client));
    expect(client.emit.mock.calls).toEqual([['exception', answer]]);
    expect(() => new ServiceExceptionFilter().catch(error, onGateway(undefined))).not.toThrow();
  });
});

const inKind = (kind: string): ArgumentsHost => ({ getType: () => kind }) as unknown as ArgumentsHost;

function thrownIn(kind: string, error: ServiceError): unknown {
  try {
    return new ServiceExceptionFilter().catch(error, inKind(kind));
  } catch (thrown) {
    return thrown;
  }
}

describe('the exception filter in GraphQL', () => {
  beforeEach(() => Logger.overrideLogger(false));
  afterEach(() => Logger.overrideLogger(undefined as never));

  const refused = new ServiceApiError({
    message: 'GET /banks/v1 answered 403: secret reason',
    status: 403,
    body: { status: 403, message: 'secret reason' },
    method: 'GET',
    path: '/banks/v1',
    correlationId: 'id-1',
    hint: 'check SERVICE_APP_TOKEN',
    credentialFault: true,
  });

  it('throws an HttpException, which shows callers nothing but a message, a status and a code', () => {
    const thrown = thrownIn('graphql', refused) as HttpException;
    const message = 'The service failed to answer this call.';
    expect(thrown).toBeInstanceOf(HttpException);
    expect(thrown).toMatchObject({ message, extensions: { code: 'api_error', statusCode: 502 } });
    expect(thrown.getStatus()).toBe(502);
    expect(thrown.cause).toBe(refused);
    const shown = [
      JSON.stringify(thrown),
      inspect({ ...thrown }, { depth: 9 }),
      String(thrown),
      thrown.stack,
    ];
    expect(shown.join()).not.toMatch(/secret reason|SERVICE_|banks|id-1|filter/);
  });

  it('tells a caller what was wrong with the input', () => {
    expect(thrownIn('graphql', error)).toMatchObject({
      message: 'path must be a string',
      extensions: { code: 'invalid_request', statusCode: 400 },
    });
  });

  it('rejects the reply of a microservice with it', async () => {
    const reply = thrownIn('rpc', error) as Observable<never>;
    const { cause: _, ...rejection } = answer;
    await expect(lastValueFrom(reply)).rejects.toEqual(rejection);
  });

  it('hands the error itself to applications of other kinds', () => {
    expect(thrownIn('commander', refused)).toBe(refused);
  });
});

describe('the exception filter over HTTP', () => {
  const closed = new ServiceConnectionError({ kind: 'closed', message: 'The module was shut down' });
  const lost = new ServiceConnectionError({ kind: 'closed', outcomeUnknown: true, message: 'shut down' });
  const limited = new ServiceTokenError({ code: 'token_rate_limited', message: 'later', retryAfter: 1.2 });
  const endless = new ServiceTokenError({ code: 'token_rate_limited', message: 'x', retryAfter: 9_999_999 });
  const lines: string[] = [];
  beforeAll(() => {
    const error = (...line: string[]): void => void lines.push(line.filter(Boolean).join(' | '));
    Logger.overrideLogger({ log: () => undefined, warn: () => undefined, error });
  });
  afterAll(() => Logger.overrideLogger(undefined as never));

  /** What the filter does to a reply. */
  function answered(
    thrown: ServiceError,
    request: object,
    more: object = {},
    filter = new ServiceExceptionFilter(),
  ): unknown[] {
    const told: unknown[] = [];
    const reply = {
      ...more,
      header: (name: string, value: string) => void told.push(`${name}: ${value}`),
      status: (code: number) => (told.push(code), reply),
      send: () => undefined,
    };
    const http = { getResponse: () => reply, getRequest: () => request };
    const host = { getType: () => 'http', switchToHttp: () => http } as unknown as ArgumentsHost;
    filter.catch(thrown, host);
    return told;
  }

  it.each<[string, ServiceError, object, unknown[]]>([
    ['at shutdown', closed, { httpVersionMajor: 1 }, ['Connection: close', 503]],
    ['at shutdown, with the doubt', lost, { httpVersionMajor: 1 }, ['Connection: close', 502]],
    ['at shutdown, on Fastify', closed, { raw: { httpVersionMajor: 1 } }, ['Connection: close', 503]],
    ['at shutdown, over HTTP/2', closed, { httpVersionMajor: 2 }, [503]],
    ['with Retry-After of over a day', endless, { httpVersionMajor: 1 }, ['Retry-After: 86400', 503]],
    ['with Retry-After', limited, { httpVersionMajor: 1 }, ['Retry-After: 2', 503]],
    ['of the caller', error, { httpVersionMajor: 1 }, [400]],
  ])('%s: its headers and its status', (_, thrown, request, expected) => {
    expect(answered(thrown, request)).toEqual(expected);
  });

  it('logs what the caller cannot correct, but not each call that the shutdown ends', () => {
    lines.length = 0;
    for (const thrown of [closed, error, limited]) answered(thrown, { httpVersionMajor: 1 });
    expect(lines).toEqual(['503: token_rate_limited: later | ServiceExceptionFilter']);
  });

  it('logs the fields too where the logger of Nest writes JSON, and not where it writes lines', () => {
    const written: string[] = [];
    const console = jest
      .spyOn(globalThis.console, 'error')
      .mockImplementation((line) => void written.push(String(line)));
    const before = (Logger as unknown as { staticInstanceRef: never }).staticInstanceRef;
    const lost = new ServiceConnectionError({ kind: 'reset', message: 'gone', correlationId: 'id-9' });
    for (const logger of [
      new ConsoleLogger({ json: true, forceConsole: true }),
      new ConsoleLogger({ colors: false, forceConsole: true }),
    ]) {
      Logger.overrideLogger(logger);
      answered(lost, { httpVersionMajor: 1 });
    }
    Logger.overrideLogger(before);
    console.mockRestore();
    expect(JSON.parse(written[0])).toMatchObject({
      level: 'error',
      context: 'ServiceExceptionFilter',
      message: {
        message: '503: connection_reset: gone; correlation id id-9',
        code: 'connection_reset',
        status: 503,
        correlationId: 'id-9',
      },
    });
    expect(written[1]).toMatch(
      /\[ServiceExceptionFilter\] 503: connection_reset: gone; correlation id id-9$/,
    );
  });

  it.each<[string, PropertyDescriptor]>([
    ['undefined', { value: undefined }],
    ['null', { value: null }],
    [
      'unreadable',
      {
        get: () => {
          throw new Error('of the host');
        },
      },
    ],
  ])('logs and answers with a ConsoleLogger of the host whose options are %s', (_, options) => {
    const written: unknown[] = [];
    class HostLogger extends ConsoleLogger {
      override error(...line: unknown[]): void {
        written.push(...line.filter(Boolean));
      }
    }
    const before = (Logger as unknown as { staticInstanceRef: never }).staticInstanceRef;
    Logger.overrideLogger(Object.defineProperty(new HostLogger(), 'options', options));
    expect(answered(limited, { httpVersionMajor: 1 })).toEqual(['Retry-After: 2', 503]);
    Logger.overrideLogger(before);
    expect(written).toEqual(['503: token_rate_limited: later', 'ServiceExceptionFilter']);
  });

  it('answers input that was refused with the status that it is told to', () => {
    const options = { invalidRequestStatus: 422 };
    expect(answerOf(error, options)).toMatchObject({ status: 422, message: 'path must be a string' });
    expect(toHttpException(error, options).getStatus()).toBe(422);
    expect(answered(error, { httpVersionMajor: 1 }, {}, new ServiceExceptionFilter(options))).toEqual([422]);
    expect(answered(limited, {}, {}, new ServiceExceptionFilter(options))).toEqual(['Retry-After: 2', 503]);
  });

  it.each([399, 500, NaN, '422'])('refuses the status %p for such input', (invalidRequestStatus) => {
    const options = { invalidRequestStatus } as { invalidRequestStatus: number };
    expect(() => new ServiceExceptionFilter(options)).toThrow(
      'invalidRequestStatus must be a status from 400 to 499',
    );
  });

  it.each(['headersSent', 'sent'])('only ends an answer that has begun: %s', (begun) => {
    const end = jest.fn();
    expect(answered(closed, {}, { [begun]: true, end })).toEqual([]);
    expect(answered(closed, {}, { [begun]: true, raw: { end } })).toEqual([]);
    expect(end).toHaveBeenCalledTimes(2);
    expect(answered(closed, {}, { [begun]: true })).toEqual([]);
  });
});

describe('the answer to an error', () => {
  class OtherError extends ServiceError {
    readonly code = 'other' as never;
  }
  const api = (status: number, more: object = {}): ServiceApiError =>
    new ServiceApiError({ message: 'ours', status, method: 'GET', path: '/a', ...more });
  const connection = (kind: ConnectionErrorKind, outcomeUnknown: boolean): ServiceConnectionError =>
    new ServiceConnectionError({ kind, outcomeUnknown, correlationId: 'id-1', message: 'ours' });
  const unavailable = 'The service cannot be reached at the moment.';
  const failed = 'The service failed to answer this call.';
  const doubt = ' The request may have been carried out all the same.';

  it.each<[string, ServiceError, object]>([
    ['404', api(404, { body: { message: 'theirs' } }), { status: 404, message: 'theirs' }],
    ...[400, 409, 422].map((status): [string, ServiceError, object] => [
      String(status),
      api(status, { body: { message: 'theirs' } }),
      { status, message: 'theirs' },
    ]),
    ['409 without a message', api(409), { status: 409, message: 'The service answered 409.' }],
    ['400 about our credentials', api(400, { credentialFault: true }), { status: 502 }],
    ['418', api(418), { status: 502, message: failed }],
    ['422 of a body that is no JSON', api(422, { code: 'invalid_response' }), { status: 502 }],
    ['404 of a path of ours', api(404, { body: { message: 'theirs' }, hint: 'check it' }), { status: 502 }],
    [
      '500 after a POST',
      api(500, { method: 'POST', outcomeUnknown: true }),
      { status: 502, message: failed + doubt },
    ],
    ...[400, 401, 404, 409, 422, 429].map((status): [string, ServiceError, object] => [
      `${status} after a lost attempt`,
      api(status, { outcomeUnknown: true, body: { message: 'theirs' }, retryAfter: 5 }),
      { status: 502, message: failed + doubt },
    ]),
    [
      'HTML after a POST',
      api(200, { method: 'POST', outcomeUnknown: true, code: 'invalid_response' }),
      { status: 502, message: failed + doubt },
    ],
    [
      'input',
      ServiceRequestError.of('app_user_id', 'must be a string'),
      { status: 400, message: 'app_user_id must be a string' },
    ],
    [
      '429',
      api(429, { retryAfter: 5 }),
      { status: 503, message: 'The service is busy at the moment.', retryAfter: 5 },
    ],
    [
      'a time-out',
      connection('timeout', false),
      { status: 504, message: 'The service did not answer in time.' },
    ],
    ['a reset that changed nothing', connection('reset', false), { status: 503, message: unavailable }],
    ...(['reset', 'closed', 'redirect', 'too_large'] as const).map((kind): [string, ServiceError, object] => [
      `an unknown outcome: ${kind}`,
      connection(kind, true),
      { status: 502, message: failed + doubt },
    ]),
    [
      'an unknown outcome: a time-out',
      connection('timeout', true),
      { status: 504, message: `The service did not answer in time.${doubt}` },
    ],
    ['a certificate', new ServiceCertificateError([]), { status: 503, message: unavailable }],
    ['any other error', new OtherError('ours'), { status: 500, message: 'Internal server error' }],
  ])('%s', (_, thrown, expected) => {
    const answered = answerOf(thrown);
    expect(answered).toMatchObject(expected);
    expect(answered.retryAfter).toBe((expected as { retryAfter?: number }).retryAfter);
    expect(answered.code).toBe(thrown.code);
    const { status, message, code } = answered;
    const exception = toHttpException(thrown);
    expect(exception.getStatus()).toBe(status);
    expect(exception.getResponse()).toEqual({ statusCode: status, message, code });
    expect(exception.cause).toBe(thrown);
    expect(Object.keys(exception)).not.toContain('cause');
  });

  it.each<[string, ServiceError, object]>([
    ...[400, 404, 409, 422].map((status): [string, ServiceError, object] => [
      `${status} with a name`,
      api(status, { body: { status: 'CUSTOMER_ALREADY_EXISTS', message: 'theirs' } }),
      { status, message: 'theirs', serviceStatus: 'CUSTOMER_ALREADY_EXISTS' },
    ]),
    [
      '403 that is passed on',
      api(403, { body: { status: 'CONSENT_EXPIRED', message: 'theirs' }, credentialFault: true, hint: 'h' }),
      { status: 403, message: 'theirs', serviceStatus: 'CONSENT_EXPIRED' },
    ],
    [
      '429 that is passed on',
      api(429, { body: { status: 'CONSENT_EXPIRED' }, retryAfter: 5 }),
      { status: 429, message: 'The service answered 429.', serviceStatus: 'CONSENT_EXPIRED', retryAfter: 5 },
    ],
    [
      '403 with another name',
      api(403, { body: { status: 'OTHER' }, credentialFault: true }),
      { status: 502 },
    ],
    [
      '401 with that name',
      api(401, { body: { status: 'CONSENT_EXPIRED' }, credentialFault: true }),
      { status: 502 },
    ],
    ['500 with that name', api(500, { body: { status: 'CONSENT_EXPIRED' } }), { status: 502 }],
    [
      '403 with that name after a lost attempt',
      api(403, { body: { status: 'CONSENT_EXPIRED' }, outcomeUnknown: true }),
      { status: 502, message: failed + doubt },
    ],
    ...['expired', 'A', 'A B', `A${'B'.repeat(64)}`, 'A<B', 409].map(
      (status): [string, ServiceError, object] => [
        `409 with ${status}, which is no name`,
        api(409, { body: { status, message: 'theirs' } }),
        { status: 409, message: 'theirs' },
      ],
    ),
  ])('with passOn: %s', (_, thrown, expected) => {
    const passOn = ['CONSENT_EXPIRED'];
    const { code, retryAfter, ...answered } = answerOf(thrown, { passOn });
    const { serviceStatus, retryAfter: asked } = expected as Partial<ExceptionAnswer>;
    expect(answered).toMatchObject(
      Object.fromEntries(Object.entries(expected).filter(([key]) => key !== 'retryAfter')),
    );
    expect([answered.serviceStatus, retryAfter]).toEqual([serviceStatus, asked]);
    const { status: statusCode, message } = answered;
    expect(toHttpException(thrown, { passOn }).getResponse()).toStrictEqual({
      statusCode,
      message,
      code,
      ...(serviceStatus && { serviceStatus }),
    });
    const named = serviceStatus && { serviceStatus };
    const client = { emit: jest.fn() };
    Logger.overrideLogger(false);
    const filter = new ServiceExceptionFilter({ passOn });
    filter.catch(thrown, onGateway(client));
    expect(client.emit.mock.calls[0]?.[1]).toStrictEqual({
      status: 'error',
      statusCode,
      message,
      code,
      ...named,
      cause: { pattern: 'ask' },
    });
    expect(() => filter.catch(thrown, inKind('graphql'))).toThrow(
      expect.objectContaining({ extensions: { code, statusCode, ...named } }),
    );
    Logger.overrideLogger(undefined as never);
  });

  it.each([
    ['an Error', new Error('no')],
    ['an HttpException', new HttpException('no', 409)],
    ['an object that looks like one', { ...api(409), name: 'ServiceApiError', message: 'no' }],
    ['null', null],
    ['undefined', undefined],
  ])('is none of ours to give: %s', (_, thrown) => {
    expect(answerOf(thrown)).toBeUndefined();
    expect(toHttpException(thrown)).toBeUndefined();
  });

  it('is described for the log, with what was asked and what is not known', () => {
    expect(describeError(connection('timeout', true))).toBe(
      'connection_timeout: ours; it may have been carried out; correlation id id-1',
    );
    expect(describeError(connection('timeout', false))).toBe('connection_timeout: ours; correlation id id-1');
    const refused = api(400, { body: { message: 'theirs' }, correlationId: 'id-2', hint: 'check it' });
    expect(describeError(refused)).toBe('api_error: GET /a: ours; correlation id id-2. check it');
    expect(describeError(api(200, { code: 'invalid_response' }))).toBe('invalid_response: GET /a: ours');
  });
});
