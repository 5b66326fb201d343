import { afterEach, describe, expect, it } from '@jest/globals';
import axios from 'axios';
import { readFileSync } from 'node:fs';
import { run } from '../../../lib/cli/doctor.js';
import { axiosFaults, OLDEST_AXIOS } from '../../../lib/module/axios-version.js';
import { openService } from '../../../lib/module/load-configuration.js';
import { commandIo } from '../../helpers/command-io.js';

interface Manifest {
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
}

/** Its type says that nobody sets it. */
const mutable = axios as { VERSION: string };

const manifestOf = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;
const sandbox = { appToken: 'a1', urls: { sandboxUrl: 'https://sandbox.bank' } };

describe('The version of axios', () => {
  const installed = axios.VERSION;
  afterEach(() => {
    mutable.VERSION = installed;
  });

  it.each(['0.30.2', '1.7.9', '1.13.4', '1.13.4-beta.1'])('%s is too old', (version) => {
    expect(axiosFaults(version)).toEqual([
      { option: 'axios', message: expect.stringContaining(`version ${version} is too old`) },
    ]);
  });

  it.each(['1.13.5', '1.13.10', '1.21.0', '2.0.0', installed, undefined, '', 'mocked'])(
    '%s is not',
    (version) => {
      expect(axiosFaults(version)).toEqual([]);
    },
  );

  it('ends a start, beside what else is wrong', async () => {
    mutable.VERSION = '1.12.2';
    await expect(openService({ ...sandbox, appToken: '' }, undefined)).rejects.toMatchObject({
      name: 'ServiceConfigurationError',
      faults: [
        { option: 'axios', message: expect.stringMatching(/^version 1\.12\.2 .* npm i axios@1\.$/) },
        { option: 'appToken' },
      ],
    });
  });

  it('is in the first row of the doctor, with those of Node, NestJS and this package', async () => {
    const variables = { SERVICE_APP_TOKEN: 'a1', SERVICE_SANDBOX_URL: 'https://sandbox.bank' };
    const rowOf = async () => {
      const io = commandIo(variables);
      const code = await run(['--offline'], io);
      return { code, row: io.printed().split('\n').slice(0, 2).join('') };
    };
    expect(await rowOf()).toEqual({
      code: 0,
      row: expect.stringMatching(
        /^ok +versions +Node \d+\.\d+\.\d+, NestJS 1\d\.\d+\.\d+, axios 1\.\d+\.\d+, nestjs-service \d+\.\d+\.\d+\./,
      ),
    });
    mutable.VERSION = '1.12.2';
    expect(await rowOf()).toEqual({
      code: 1,
      row: expect.stringMatching(/^failed +versions .*axios 1\.12\.2.* too old.*-> .*npm i axios@1\.$/),
    });
  });

  it('that the range of package.json begins with is that of a consumer in CI', () => {
    expect(manifestOf('package.json').peerDependencies.axios).toBe(`^${OLDEST_AXIOS}`);
    expect(manifestOf('test/consumers/cjs-nest11/package.json').dependencies.axios).toBe(OLDEST_AXIOS);
  });
});
