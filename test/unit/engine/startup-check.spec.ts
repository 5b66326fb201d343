import { describe, expect, it, jest } from '@jest/globals';
import { type ServiceModuleOptions } from '../../../lib/config/options.js';
import { checkStart } from '../../../lib/engine/startup-check.js';
import { ServiceConnectionError } from '../../../lib/errors/index.js';
import { makeClient } from '../../helpers/make-client.js';

describe('The start-up check', () => {
  type Call = (limit: { timeout?: number }) => Promise<unknown>;
  const notAsked: Call = () => Promise.reject(new Error('not asked for'));

  async function run(
    startupCheck: 'off' | 'warn' | 'fail',
    list: Call,
    getApiToken = notAsked,
    given: ServiceModuleOptions = {},
  ) {
    const urls = { sandboxUrl: 'https://sandbox.example', sandboxAuthUrl: 'https://auth.example' };
    const { options } = await makeClient(
      { urls, appToken: 'app-token', startupCheck, ...given },
      { name: 'ksa' },
    );
    const lines: string[] = [];
    const note = (level: string) => (line: string) => void lines.push(`${level}: ${line}`);
    const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
    const checked = checkStart(options, { getApiToken } as never, { list } as never, log);
    const error = await checked.catch((reason: unknown) => reason);
    return { lines, error };
  }
  const failing = () => Promise.reject(new ServiceConnectionError({ kind: 'refused', message: 'no answer' }));

  it('asks for nothing where it is off', async () => {
    const list = jest.fn(failing);
    expect(await run('off', list)).toEqual({ lines: [], error: undefined });
    expect(list).not.toHaveBeenCalled();
  });

  it.each(['warn', 'fail'] as const)('with %s: the log says that it passed', async (mode) => {
    const { lines, error } = await run(mode, async () => []);
    expect([lines, error]).toEqual([['log: The start-up check passed.'], undefined]);
  });

  it('has for both calls the time of one, and 15 s at most; a late token leaves the banks a millisecond', async () => {
    const limits: unknown[] = [];
    const list: Call = async ({ timeout }) => void limits.push(timeout);
    const late: Call = async ({ timeout }) => {
      limits.push(timeout);
      await new Promise((resolve) => setTimeout(resolve, 60));
    };
    const oauth = { clientId: '6f2d6f0e-5a1b-4a44-9c6e-0d6f6c1f3a52', clientSecret: 's3cret' };
    const { error } = await run('fail', list, late, { oauth, http: { timeout: 50 } });
    expect([limits, error]).toEqual([[expect.any(Number), 1], undefined]);
    expect(limits[0]).toBeLessThanOrEqual(50);
    await run('fail', list);
    expect(limits[2]).toBeLessThanOrEqual(15_000);
    expect(limits[2]).toBeGreaterThan(10_000);
  });

  it('that failed is a warning, or the end of the start, with what to do', async () => {
    const said = /no answer/;
    const warned = await run('warn', failing);
    expect(warned.error).toBeUndefined();
    expect(warned.lines).toEqual([expect.stringMatching(/^warn: The start-up check failed \(api\.banks\)/)]);
    expect(warned.lines[0]).toMatch(said);
    const { lines, error } = await run('fail', failing);
    expect(lines).toEqual([]);
    expect(error).toMatchObject({
      code: 'startup_check_failed',
      faults: [
        {
          option: 'urls.sandboxUrl',
          variable: 'SERVICE_KSA_SANDBOX_URL',
          message: expect.stringMatching(said),
        },
      ],
    });
  });
});
