import { describe, expect, it } from '@jest/globals';
import { StoreCipher } from '../../../../lib/auth/store/store-cipher.js';
import { StoredToken } from '../../../../lib/auth/store/stored-token.js';
import { Secret } from '../../../../lib/config/secret.js';
import { settle } from '../../../helpers/fake-clock.js';
import { OWNER, setUp } from './set-up.js';

const NOW = Date.UTC(2030, 0, 1);
const cipher = new StoreCipher(new Secret('secret-1'));
const grant = { accessToken: 'token-1', scope: 'customer.b', expiresIn: 600 };

const entry = (scope = 'customer.b', owner = OWNER, by = cipher): StoredToken =>
  new StoredToken(by, scope, owner);
const written = (): string => entry().write(grant, NOW)?.value ?? '';
/** What somebody could write who knows the secret. */
const forged = (fields: object): string => {
  const contents = { scope: 'customer.b', accessToken: 'token-1', issuedAt: NOW, lifetimeS: 600, ...fields };
  return cipher.seal(JSON.stringify(contents), entry().key);
};

describe('an entry', () => {
  it('is read as it was written, with its age, and ends before its token', () => {
    const { value, ttlMs } = entry().write(grant, NOW) ?? {};
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
      entry('customer.b', OWNER, new StoreCipher(new Secret('secret-2'))),
    ];
    expect(new Set([entry(), ...others].map(({ key }) => key)).size).toBe(6);
    // Redis Cluster: the part in braces chooses the slot.
    expect(entry().key).toMatch(/^token:v1:\{[\w-]{43}\}$/);
    expect(entry().lockKey).toBe(`${entry().key}:lock`);
  });
});

it('a sign has the age of its writing; one of another token, from the future or forged is none', () => {
  const sign = entry().writeSign(NOW);
  expect([0, 500, 60_000, -1_000].map((ms) => entry().readSign(sign, NOW + ms))).toEqual([0, 500, 60_000, 0]);
  expect(entry().readSign(sign, NOW - 1_001)).toBe(Infinity);
  expect(entry('customer.c').readSign(sign, NOW)).toBe(Infinity);
  for (const forged of [undefined, 'lie', String(NOW), cipher.seal(String(NOW), entry().key)])
    expect(entry().readSign(forged, NOW)).toBe(Infinity);
});

describe('an entry that is not to be trusted is ignored:', () => {
  it('moved to another key', () => {
    expect(entry('customer.c').read(written(), NOW)).toBeUndefined();
  });

  it('of another secret, at the same key', () => {
    const other = new StoreCipher(new Secret('secret-2'));
    expect(entry().read(other.seal(JSON.stringify({}), entry().key), NOW)).toBeUndefined();
    expect(other.open(written(), entry().key)).toBeUndefined();
    expect(cipher.open(written(), entry().key)).toContain('token-1');
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

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['no text', 1],
    ['empty', ''],
    ['in clear', JSON.stringify({ scope: 'customer.b', accessToken: 'x', issuedAt: NOW, lifetimeS: 600 })],
    ['of another format', written().replace('v1.', 'v2.')],
    ['no JSON inside', cipher.seal('{', entry().key)],
    ['null inside', cipher.seal('null', entry().key)],
    ['too long to be one', `v1.${'A'.repeat(70_000)}`],
    ['of another scope', forged({ scope: 'api' })],
  ])('%s', (_name, value) => {
    expect(entry().read(value, NOW)).toBeUndefined();
  });
});

/** What stands above SharedStore. */
describe('three replicas that begin together', () => {
  async function begin() {
    const { clock, store, process } = setUp();
    const begun = clock.monotonic();
    const asked: string[] = [];
    const replicas = ['A', 'B', 'C'].map((name) => {
      const replica = process();
      const { source } = replica;
      const real = source.request.bind(source);
      source.request = (scope, context) => {
        asked.push(`${name} at ${Math.round((clock.monotonic() - begun) / 100) / 10} s`);
        return real(scope, context);
      };
      const controller = new AbortController();
      const outcome = replica
        .request('api', { signal: controller.signal })
        .then(({ accessToken }) => accessToken)
        .catch((error: Error) => error.message);
      return { ...replica, outcome, end: () => controller.abort(new Error('ended')) };
    });
    await settle();
    const end = () => replicas.forEach((replica) => replica.end());
    return { clock, store, asked, end, replicas };
  }

  it('A tells at 4 s: B and C find it', async () => {
    const { clock, asked, replicas } = await begin();
    await clock.advance(4_000);
    replicas[0].source.last.grant(600, 'of-A');
    await clock.advance(150);
    expect(await Promise.all(replicas.map(({ outcome }) => outcome))).toEqual(['of-A', 'of-A', 'of-A']);
    expect(asked).toEqual(['A at 0 s']);
  });

  it('the endpoint does not answer A: B asks at 5.5 s, C never', async () => {
    const { clock, asked, end } = await begin();
    await clock.advance(10_000);
    expect(asked).toEqual(['A at 0 s', expect.stringMatching(/^[BC] at 5\.5 s$/)]);
    end();
    await clock.advance(1_000);
  });

  it('A dies: B asks 2.5 s after its last sign', async () => {
    const { clock, store, asked, end, replicas } = await begin();
    // Its lock stays, as of a process that is gone.
    const locks = new Map(store.locks);
    replicas[0].end();
    await settle();
    locks.forEach((until, key) => store.locks.set(key, until));
    await clock.advance(4_000);
    expect(asked).toEqual(['A at 0 s', expect.stringMatching(/^[BC] at 2\.[56] s$/)]);
    end();
    await clock.advance(1_000);
  });

  it('the endpoint refuses A: B or C asks within 150 ms', async () => {
    const { clock, asked, end, replicas } = await begin();
    await clock.advance(1_000);
    replicas[0].source.last.fail(new Error('refused'));
    await clock.advance(150);
    expect(asked).toEqual(['A at 0 s', expect.stringMatching(/^[BC] at 1(\.[01])? s$/)]);
    end();
    await clock.advance(1_000);
  });
});
