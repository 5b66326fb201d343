import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import {
  ServiceApiError,
  ServiceCertificateError,
  ServiceConfigurationError,
  ServiceConnectionError,
  type ServiceError,
  ServiceRequestError,
  ServiceStartupError,
  ServiceTokenError,
} from 'nestjs-service';
import { copyOf } from '../../../lib/errors/index.js';

const faults = [{ option: 'appToken', variable: 'SERVICE_APP_TOKEN', message: 'is missing.' }];

describe.each([ServiceConfigurationError, ServiceCertificateError])('%p', (Class) => {
  const error = new Class(faults);

  it('has its faults as data', () => {
    expect(error.faults).toEqual(faults);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: error.code, faults });
  });

  it('prints each fault once', () => {
    expect(inspect(error, { depth: 5 }).split('is missing.')).toHaveLength(2);
  });
});

describe('The errors have all that they were given, as data', () => {
  const certificate = { subject: 'CN=app' } as ServiceCertificateError['certificate'];
  const api = {
    code: 'invalid_response' as const,
    status: 409,
    body: { status: 'S', message: 'theirs' },
    method: 'GET',
    route: '/a',
    correlationId: 'id-1',
    retryAfter: 5,
    hint: 'check it',
    credentialFault: true,
    outcomeUnknown: true,
  };
  const connection = {
    kind: 'redirect' as const,
    method: 'POST',
    route: '/a',
    reason: '302',
    outcomeUnknown: true,
    correlationId: 'id-1',
    location: 'https://a.bank',
  };
  const token = {
    code: 'token_refused' as const,
    error: 'invalid_client',
    error_description: 'no',
    status: 401,
    scope: 'api',
    retryAfter: 10,
  };
  const message = 'ours';

  it.each<[string, ServiceError, object]>([
    ['ServiceApiError', new ServiceApiError({ ...api, path: '/a/7', message }), { ...api, message }],
    [
      'ServiceApiError',
      new ServiceApiError({ message, status: 404, method: 'GET', path: '/a' }),
      {
        code: 'api_error',
        credentialFault: false,
        outcomeUnknown: false,
        message,
        status: 404,
        method: 'GET',
        route: '/a',
      },
    ],
    [
      'ServiceConnectionError',
      new ServiceConnectionError({ ...connection, path: '/a/7', message }),
      { ...connection, message, code: 'connection_redirect' },
    ],
    [
      'ServiceConnectionError',
      new ServiceConnectionError({ kind: 'dns', message }),
      { kind: 'dns', message, code: 'connection_dns', outcomeUnknown: false, retryable: true },
    ],
    [
      'ServiceConnectionError',
      ServiceConnectionError.closed(),
      {
        kind: 'closed',
        message: 'The client is closed, or its application is shutting down.',
        code: 'connection_closed',
        outcomeUnknown: false,
        retryable: true,
      },
    ],
    ['ServiceTokenError', new ServiceTokenError({ ...token, message }), { ...token, message }],
    [
      'ServiceRequestError',
      new ServiceRequestError([
        { property: 'a', message: 'is bad' },
        { property: 'b', message: 'too' },
      ]),
      {
        code: 'invalid_request',
        message: 'Nothing was sent: a is bad; b too',
        faults: [
          { property: 'a', message: 'is bad' },
          { property: 'b', message: 'too' },
        ],
      },
    ],
    [
      'ServiceCertificateError',
      new ServiceCertificateError(faults, { certificate }),
      {
        code: 'invalid_certificate',
        certificate,
        message: 'The client certificate is not usable:\n  - appToken (SERVICE_APP_TOKEN): is missing.',
      },
    ],
    [
      'ServiceCertificateError',
      new ServiceCertificateError([{ option: 'tls', message: 'no.' }], { code: 'certificate_refused' }),
      {
        code: 'certificate_refused',
        message: 'The server refused the client certificate:\n  - tls: no.',
      },
    ],
    [
      'ServiceStartupError',
      new ServiceStartupError('api.tls', faults[0]),
      {
        code: 'startup_check_failed',
        faults,
        message: 'The start-up check failed (api.tls):\n  - appToken (SERVICE_APP_TOKEN): is missing.',
      },
    ],
  ])('%s', (name, error, data) => {
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name, retryable: false, ...data });
    const absent = Object.entries(error).filter(
      ([key]) => !['faults', 'certificate', 'retryable', ...Object.keys(data)].includes(key),
    );
    expect(absent.filter(([, value]) => value !== undefined)).toEqual([]);
    expect(Object.keys(error)).not.toContain('name');

    const copy = copyOf(error) as ServiceError;
    expect(copy).not.toBe(error);
    expect(copy).toBeInstanceOf(Object.getPrototypeOf(error).constructor);
    expect([copy.toJSON(), copy.stack, Object.keys(copy)]).toEqual([
      error.toJSON(),
      error.stack,
      Object.keys(error),
    ]);
    // A host may give it another name, and other fields.
    copy.name = 'Own';
    expect([copy.name, error.name]).toEqual(['Own', name]);
    const { stack } = error;
    copy.stack = 'Own stack';
    expect([copy.stack, error.stack]).toEqual(['Own stack', stack]);
  });

  it('are not copied where they are not of this module', () => {
    const other = new Error('of the host');
    expect(copyOf(other)).toBe(other);
  });
});
