import {
  type TokenGrant,
  type TokenRequestContext,
  type TokenSource,
} from '../../../../lib/auth/access-token.js';
import { ClientSecret } from '../../../../lib/auth/endpoint/client-secret.js';
import { SharedStore } from '../../../../lib/auth/store/shared-store.js';
import { Secret } from '../../../../lib/config/secret.js';
import { type TokenStore } from '../../../../lib/config/token-cache.options.js';
import { SILENT } from '../../../../lib/exchange/io.js';
import { type Log } from '../../../../lib/exchange/io.js';
import { FakeClock, settle } from '../../../helpers/fake-clock.js';
import { FakeSource } from '../fakes.js';

export const OWNER = { tokenUrl: 'https://auth.example/oauth2/token', clientId: 'client-1' };

/** The secret of a client, of a source that may change. */
export function clientSecret(
  clock: FakeClock,
  read: () => string | Promise<string> = () => 'secret-1',
): ClientSecret {
  const reveal = async (): Promise<Secret> => new Secret(await read());
  return new ClientSecret(reveal, clock, String);
}

/** A store in memory, by the same clock. */
export class MemoryStore implements TokenStore {
  readonly entries = new Map<string, { value: string; until: number }>();
  readonly locks = new Map<string, number>();

  constructor(readonly clock: FakeClock) {}

  async get(key: string): Promise<string | undefined> {
    const entry = this.entries.get(key);
    return entry && entry.until > this.clock.monotonic() ? entry.value : undefined;
  }

  async set(key: string, value: string, ttlMs: number): Promise<void> {
    this.entries.set(key, { value, until: this.clock.monotonic() + ttlMs });
  }

  async delete(key: string, ifValue?: string): Promise<void> {
    if (ifValue === undefined || this.entries.get(key)?.value === ifValue) this.entries.delete(key);
  }

  async lock(key: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    if ((this.locks.get(key) ?? 0) > this.clock.monotonic()) return undefined;
    this.locks.set(key, this.clock.monotonic() + ttlMs);
    return async () => void this.locks.delete(key);
  }
}

interface StoreSetUp {
  source: TokenSource;
  store: TokenStore;
  clock: FakeClock;
  clientSecret?: ClientSecret;
  random?: () => number;
  tokenUrl?: string;
  clientId?: string;
  certificateThumbprint?: () => string | undefined;
  log?: Partial<Log>;
}

export function makeStore({ source, store, clock, ...more }: StoreSetUp): SharedStore {
  const { tokenUrl = OWNER.tokenUrl, clientId = OWNER.clientId, certificateThumbprint } = more;
  const owner = () => ({ tokenUrl, clientId, fingerprint256: certificateThumbprint?.() });
  const secrets = more.clientSecret ?? clientSecret(clock);
  // As the endpoint: the certificate of its beginning, and the secret that it has read by its end.
  const endpoint: TokenSource = {
    request: async (scope, context) => {
      const before = owner();
      const grant = await source.request(scope, context);
      return { ...grant, requestedWith: { ...before, secret: secrets.last ?? (await secrets.read()) } };
    },
  };
  const log = { ...SILENT, ...more.log };
  const io = { clock, random: more.random ?? (() => 0), log, describeOption: String };
  return new SharedStore(endpoint, store, owner, secrets, io);
}

export function setUp() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  /** One process. */
  const process = (options: Partial<StoreSetUp> = {}) => {
    const source = new FakeSource();
    const shared = makeStore({ source, store, clock, ...options });
    const request = (scope = 'api', context: Partial<TokenRequestContext> = {}): Promise<TokenGrant> =>
      shared.request(scope, {
        signal: new AbortController().signal,
        timeoutMs: 10_000,
        accepts: () => true,
        isAwaited: () => true,
        ...context,
      });
    const fill = async (scope = 'api', expiresIn: number | undefined = 600): Promise<TokenGrant> => {
      const waiting = request(scope);
      await settle();
      source.last.grant(expiresIn);
      const grant = await waiting;
      await settle();
      return grant;
    };
    return { source, shared, request, fill };
  };
  return { clock, store, process };
}
