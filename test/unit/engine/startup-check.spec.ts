import { describe, expect, it, jest } from '@jest/globals';
import { checkStart } from '../../../lib/engine/startup-check.js';
import { ServiceConnectionError } from '../../../lib/errors/index.js';
import { makeClient } from '../../helpers/make-client.js';

describe('The start-up check', () => {
  async function run(startupCheck: 'off' | 'warn' | 'fail', list: () => Promise<unknown>) {
    const urls = { sandboxUrl: 'https://sandbox.example' };
    const { options } = await makeClient({ urls, appToken: 'app-token', startupCheck }, { name: 'ksa' });
    const lines: string[] = [];
    const note = (level: string) => (line: string) => void lines.push(`${level}: ${line}`);
    const log = { debug: note('debug'), log: note('log'), warn: note('warn'), error: note('error') };
    const auth = { getApiToken: () => Promise.reject(new Error('not asked for')) };
    const checked = checkStart(options, auth, { list } as never, log);
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
