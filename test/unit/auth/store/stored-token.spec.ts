import { describe, expect, it } from '@jest/globals';
import { StoredToken, StoreKeys } from '../../../../lib/auth/store/stored-token.js';
import { Secret } from '../../../../lib/config/secret.js';
import { OWNER } from './set-up.js';

const NOW = Date.UTC(2030, 0, 1);
const keys = new StoreKeys(new Secret('secret-1'));
const grant = { accessToken: 'token-1', scope: 'customer.b', expiresIn: 600 };

const entry = (scope = 'customer.b', owner = OWNER, by = keys): StoredToken =>
  new StoredToken(by, scope, owner);
const written = (): string => entry().write(grant, NOW).value;
describe('an entry', () => {
  it('is read as it was written, with its age, and ends before its token', () => {
    const { value, ttlMs } = entry().write(grant, NOW);
    expect(ttlMs).toBe(570_000);
    expect(entry().read(value, NOW + 60_000)).toEqual({ ...grant, ageMs: 60_000 });
  });

  it('is as old as it is by the clock of its writer; a reader whose clock is behind takes it as new', () => {
    expect(entry().read(written(), NOW - 60_000)).toEqual({ ...grant, ageMs: 0 });
  });

  it('shows no token, scope or client, in any encoding, and is another one each time', () => {
    const texts = [entry().key, written(), Buffer.from(written(), 'base64url').toString('latin1')].join();
    for (const secret of ['token-1', 'customer', 'client-1', 'secret-1']) expect(texts).not.toContain(secret);
    expect(written()).not.toBe(written());
  });

  it('is found and read by replicas of another version of the package', () => {
    const key = 'token:v1:{zJgpw_qReFObxX6mMbUVi6g3KC1f7vgcadPqn-16IbY}';
    const value =
      'v1.LUkTrLGgvwATdw1vWJd88QpSLr1EWWc9UsM3emJqGFiJAB-3QCESrKus2nrLlpb7Hz8tR44zmObBFBayvWgjdQ3uK024stF_dX7mfswxEglHourAFKQwYw0nhA4KMj8y7pzHP341Xx0F7BwbkbOgVAAYzg';
    expect([entry().key, entry().read(value, NOW)]).toEqual([key, { ...grant, ageMs: 0 }]);
  });

  it('has a key of its own for each endpoint, client, scope, certificate and secret', () => {
    const others = [
      entry('customer.b', { ...OWNER, tokenUrl: 'https://other.example/oauth2/token' }),
      entry('customer.b', { ...OWNER, clientId: 'client-2' }),
      entry('customer.c'),
      entry('customer.b', { ...OWNER, fingerprint256: 'AA:BB' } as typeof OWNER),
      entry('customer.b', OWNER, new StoreKeys(new Secret('secret-2'))),
    ];
    expect(new Set([entry(), ...others].map(({ key }) => key)).size).toBe(6);
    // Redis Cluster: the part in braces chooses the slot.
    expect(entry().key).toMatch(/^token:v1:\{[\w-]{43}\}$/);
    expect(entry().lockKey).toBe(`${entry().key}:lock`);
  });
});

describe('an entry that is not to be trusted is ignored:', () => {
  it('moved to another key', () => {
    expect(entry('customer.c').read(written(), NOW)).toBeUndefined();
  });

  it('of another secret, at the same key', () => {
    const other = entry('customer.b', OWNER, new StoreKeys(new Secret('secret-2')));
    expect(Object.assign(other, { key: entry().key }).read(written(), NOW)).toBeUndefined();
  });

  it('of another scope, even if who wrote it knows the secret', () => {
    const { value } = entry().write({ ...grant, scope: 'api' }, NOW);
    expect(entry().read(value, NOW)).toBeUndefined();
  });

  it('truncated or changed, anywhere', () => {
    const value = written();
    for (let end = 0; end < value.length; end += 1)
      expect(entry().read(value.slice(0, end), NOW)).toBeUndefined();
    const bytes = Buffer.from(value.slice(3), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed[index] ^= 1;
      expect(entry().read(`v1.${changed.toString('base64url')}`, NOW)).toBeUndefined();
    }
  });

  it('played again after its end', () => {
    expect(entry().read(written(), NOW + 599_999)).toBeDefined();
    expect(entry().read(written(), NOW + 600_000)).toBeUndefined();
  });

  it.each<[string, string | undefined]>([
    ['nothing', undefined],
    ['empty', ''],
    ['in clear', JSON.stringify({ scope: 'customer.b', accessToken: 'x', issuedAt: NOW, lifetimeS: 600 })],
    ['of another format', written().replace('v1.', 'v2.')],
    ['too long to be one', `v1.${'A'.repeat(70_000)}`],
  ])('%s', (_name, value) => {
    expect(entry().read(value, NOW)).toBeUndefined();
  });
});
