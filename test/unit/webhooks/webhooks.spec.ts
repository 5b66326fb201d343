import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resolveOptions } from '../../../lib/config/resolve-options.js';
import { type SecretSource } from '../../../lib/config/secret.js';
import { type RawBody, verifyWebhook, WebhooksService } from '../../../lib/webhooks/webhooks.service.js';
import { FakeClock, settle } from '../../helpers/fake-clock.js';
import { rejection } from '../../helpers/start-module.js';

const BODY = '{ "type":  "entity.created", "name": "ü" }';
const sign = (secret: string, body: string | Uint8Array = BODY, algorithm = 'sha512'): string =>
  `${algorithm}=${createHmac(algorithm, secret).update(body).digest('hex')}`;

describe('verifyWebhook', () => {
  it('accepts the signature of test case 2 of RFC 4231', () => {
    const hex =
      '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554' +
      '9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737';
    expect(verifyWebhook('what do ya want for nothing?', `sha512=${hex}`, 'Jefe')).toBe(true);
    expect(verifyWebhook('what do ya want for nothing!', `sha512=${hex}`, 'Jefe')).toBe(false);
  });

  it.each<[string, RawBody]>([
    ['text', BODY],
    ['a Buffer', Buffer.from(BODY)],
    ['a part of a larger Uint8Array', new Uint8Array(Buffer.from(`..${BODY}..`)).subarray(2, -2)],
    ['an ArrayBuffer', new Uint8Array(Buffer.from(BODY)).buffer],
    ['a DataView', new DataView(new Uint8Array(Buffer.from(BODY)).buffer)],
  ])('accepts %s as the raw body', (_, body) => {
    expect(verifyWebhook(body, sign('s3cret'), 's3cret')).toBe(true);
    expect(verifyWebhook(body, sign('s3cret', `${BODY} `), 's3cret')).toBe(false);
  });

  it('accepts bytes that are not text, and an empty body', () => {
    const bytes = Uint8Array.from([0, 255, 254, 128]);
    expect(verifyWebhook(bytes, sign('s', bytes), 's')).toBe(true);
    expect(verifyWebhook('', sign('s', ''), 's')).toBe(true);
  });

  it.each<[string, string | string[] | null | undefined]>([
    ['none', undefined],
    ['null, as Headers.get() gives it', null],
    ['an empty one', ''],
    ['the prefix alone', 'sha512='],
    ['one without its prefix', sign('s3cret').slice('sha512='.length)],
    ['one with another prefix', sign('s3cret').replace('sha512', 'sha256')],
    ['one of another hash function', sign('s3cret', BODY, 'sha256')],
    ['one of another secret', sign('other')],
    ['one that is cut off', sign('s3cret').slice(0, -1)],
    ['one with a digit more', `${sign('s3cret')}0`],
    ['one with a digit that is none', `${sign('s3cret').slice(0, -1)}g`],
    ['one whose last digit differs', sign('s3cret').replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))],
    ['characters of several bytes', 'ü'.repeat(67)],
    ['a list', [sign('s3cret'), sign('s3cret')]],
    ['two that node:http has joined', `${sign('s3cret')}, ${sign('s3cret')}`],
  ])('refuses this signature: %s', (_, signature) => {
    expect(verifyWebhook(BODY, signature, 's3cret')).toBe(false);
  });

  it('accepts a signature with hexadecimal digits in upper case', () => {
    expect(verifyWebhook(BODY, sign('s3cret').toUpperCase(), 's3cret')).toBe(true);
  });

  it('accepts a signature made with any of several secrets, as during a rotation', () => {
    for (const secret of ['old', 'new']) {
      expect(verifyWebhook(BODY, sign(secret), ['new', 'old'])).toBe(true);
    }
    expect(verifyWebhook(BODY, sign('older'), ['new', 'old'])).toBe(false);
  });

  it('accepts another hash function, with its name as prefix, and another prefix, if they are set', () => {
    const options = { algorithm: 'sha256' };
    expect(verifyWebhook(BODY, sign('s', BODY, 'sha256'), 's', options)).toBe(true);
    expect(verifyWebhook(BODY, sign('s'), 's', options)).toBe(false);
    const digits = sign('s').slice('sha512='.length);
    expect(verifyWebhook(BODY, digits, 's', { prefix: '' })).toBe(true);
  });

  it.each([[{ type: 'entity.created' }], [[1]], [undefined], [null], [7]])(
    'throws for a parsed body, and says why it cannot be verified: %j',
    (body) => {
      const verify = () => verifyWebhook(body as never, sign('s3cret', JSON.stringify(BODY)), 's3cret');
      expect(verify).toThrow(TypeError);
      expect(verify).toThrow(/a body that was parsed and serialised again has different bytes/);
      // A request without a signature is no webhook. Its sender gets a 401, and the log has no error.
      expect(verifyWebhook(body as never, undefined, 's3cret')).toBe(false);
    },
  );

  it.each([[''], [undefined], [[]], [['new', '']], [['new', undefined]]])(
    'throws for the secret %j, with which anybody could sign',
    (secret) => {
      const verify = () => verifyWebhook(BODY, sign(''), secret as string);
      expect(verify).toThrow(TypeError);
      expect(verify).toThrow('The webhook secret is missing or empty');
    },
  );
});

describe('WebhooksService', () => {
  const REREAD_MS = 10_000;
  let clock: FakeClock;
  let folder: string;
  beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), 'webhooks-'))));
  afterAll(() => rm(folder, { recursive: true }));
  beforeEach(() => {
    clock = new FakeClock();
  });

  const serviceWith = async (secret?: SecretSource): Promise<WebhooksService> => {
    const { options, faults } = await resolveOptions({
      appToken: 'app-token',
      urls: { sandboxUrl: 'https://service.example' },
      webhook: { secret },
    });
    expect(faults).toEqual([]);
    return new WebhooksService(options!, clock);
  };

  it('reads the file of the secret again after a wrong signature, at most once in 10 s', async () => {
    const file = join(folder, 'secret');
    await writeFile(file, 'old\n');
    const service = await serviceWith({ file });
    expect(await service.verify(BODY, sign('old'))).toBe(true);
    await writeFile(file, 'new\n');
    expect(await service.verify(BODY, sign('new'))).toBe(false);
    await clock.advance(REREAD_MS);
    // A right signature causes no reading.
    expect(await service.verify(BODY, sign('old'))).toBe(true);
    expect(await service.verify(BODY, sign('new'))).toBe(true);
    expect(await service.verify(BODY, sign('old'))).toBe(false);
    expect(await service.verify(BODY, sign('new'))).toBe(true);
  });

  it('calls the function for the secret at the first webhook, and after wrong signatures at most once in 10 s', async () => {
    let vaultReads = 0;
    const service = await serviceWith(() => `secret-${(vaultReads += 1)}`);
    expect(vaultReads).toBe(0);
    expect(await service.verify(BODY, undefined)).toBe(false);
    expect(vaultReads).toBe(0);
    const together = ['secret-1', 'other', 'other'].map((secret) => service.verify(BODY, sign(secret)));
    expect(await Promise.all(together)).toEqual([true, false, false]);
    expect(vaultReads).toBe(1);
    await clock.advance(REREAD_MS - 1);
    expect(await service.verify(BODY, sign('secret-2'))).toBe(false);
    await clock.advance(1);
    const later = ['secret-2', 'other', 'secret-2'].map((secret) => service.verify(BODY, sign(secret)));
    expect(await Promise.all(later)).toEqual([true, false, true]);
    expect(vaultReads).toBe(2);
  });

  it('accepts signatures made with either of two secrets, each on a line of its own', async () => {
    const service = await serviceWith(' new secret \r\n\nold\n');
    expect(await service.verify(BODY, sign(' new secret '))).toBe(true);
    expect(await service.verify(BODY, sign('old'))).toBe(true);
    expect(await service.verify(BODY, sign(''))).toBe(false);
    expect(await service.verify(BODY, sign(' new secret \r\n\nold'))).toBe(false);
  });

  it('uses the last secret while the function fails, and says what failed if there is no last secret', async () => {
    const answers: (() => string | Promise<string>)[] = [
      () => Promise.reject(new Error('s3cret of the vault')),
      () => ' \n',
      () => 5 as never,
      () => new Promise(() => undefined),
      () => 's3cret',
      () => Promise.reject(new Error('down')),
    ];
    const service = await serviceWith(() => answers.shift()!());
    for (let failing = 0; failing < 4; failing += 1) {
      const failed = rejection(service.verify(BODY, sign('s3cret')));
      await settle();
      await clock.advance(8_000);
      const error = await failed;
      expect(error).toMatchObject({ code: 'invalid_configuration', faults: [{ option: 'webhook.secret' }] });
      expect((error as Error).message).toMatch(
        /webhook\.secret \(SERVICE_WEBHOOK_SECRET\): its function threw/,
      );
      expect((error as Error).message).not.toContain('s3cret');
    }
    expect(await service.verify(BODY, sign('s3cret'))).toBe(true);
    await clock.advance(REREAD_MS);
    expect(await service.verify(BODY, sign('other'))).toBe(false);
    expect(answers).toEqual([]);
    expect(await service.verify(BODY, sign('s3cret'))).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it('names the file of the secret if it has been deleted', async () => {
    const file = join(folder, 'gone');
    await writeFile(file, 's3cret');
    const service = await serviceWith({ file });
    await rm(file);
    const error = (await rejection(service.verify(BODY, sign('s3cret')))) as Error;
    expect(error.message).toContain(
      `webhook.secret (SERVICE_WEBHOOK_SECRET_FILE): the file ${file} cannot be read (ENOENT)`,
    );
  });

  it('throws if no secret is configured, and names the missing option', async () => {
    const service = await serviceWith();
    const error = (await rejection(service.verify(BODY, sign('')))) as Error;
    expect(error.message).toContain('webhook.secret (SERVICE_WEBHOOK_SECRET): is missing');
    expect(service.missingSecret?.message).toBe(error.message);
  });

  it('shows no secret when the service is printed', async () => {
    const service = await serviceWith('s3cret');
    await service.verify(BODY, sign('s3cret'));
    const { inspect } = await import('node:util');
    expect(inspect(service, { depth: 10, showHidden: true }) + JSON.stringify(service)).not.toContain(
      's3cret',
    );
  });
});
