import { expect, it } from '@jest/globals';
import { RefusedSecrets } from '../../../../lib/auth/endpoint/client-secret.js';
import { Secret } from '../../../../lib/config/secret.js';
import { type CertificateSummary, ServiceTokenError } from '../../../../lib/errors/index.js';
import { FakeClock } from '../../../helpers/fake-clock.js';

it('remembers the refusals of 1,000 scopes at most: the oldest goes', () => {
  const refused = new RefusedSecrets(new FakeClock());
  const secret = new Secret('s');
  for (let number = 0; number <= 1_000; number += 1) {
    const scope = `customer.${number}`;
    const error = new ServiceTokenError({ code: 'token_refused', message: 'no', status: 403, scope });
    refused.remember(secret, scope, error);
  }
  expect(refused.find(secret, 'customer.0')).toBeUndefined();
  expect(refused.find(secret, 'customer.1')).toMatchObject({ status: 403, retryAfter: 10 });
  expect(refused.find(secret, 'customer.1000')).toBeDefined();
});

it('a refusal counts for the certificate of its request, whichever is in use when the answer comes', () => {
  const refused = new RefusedSecrets(new FakeClock());
  const secret = new Secret('s');
  const error = new ServiceTokenError({
    code: 'token_refused',
    error: 'invalid_client',
    message: 'no',
    status: 401,
  });
  const [old, current] = ['AA', 'BB'].map((fingerprint256) => ({ fingerprint256 }) as CertificateSummary);
  refused.remember(secret, 'api', error, old);
  expect(refused.find(secret, 'api', current)).toBeUndefined();
  expect(refused.find(secret, 'api', old)).toBeDefined();
});

it('a scope that is refused again is the newest', () => {
  const refused = new RefusedSecrets(new FakeClock());
  const secret = new Secret('s');
  const error = new ServiceTokenError({ code: 'token_refused', message: 'no', status: 403 });
  const refuse = (number: number): void => refused.remember(secret, `customer.${number}`, error);
  for (let number = 0; number < 1_000; number += 1) refuse(number);
  refuse(0);
  refuse(1_000);
  expect(refused.find(secret, 'customer.0')).toBeDefined();
  expect(refused.find(secret, 'customer.1')).toBeUndefined();
});
