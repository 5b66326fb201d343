import { describe, expect, it } from '@jest/globals';
import { run } from '../../lib/cli/doctor.js';
import { type Examined } from '../../lib/cli/examine.js';
import { BROKEN_SETUPS, setupsOfBlock } from '../helpers/broken-setups.js';
import { commandIo } from '../helpers/command-io.js';
import { secretsIn } from '../helpers/secret-scan.js';

describe('nestjs-service doctor', () => {
  const withSetup = setupsOfBlock();

  describe('names the true cause first', () => {
    for (const [what, setup] of Object.entries(BROKEN_SETUPS)) {
      it(what, async () => {
        await withSetup(setup, async (variables, simulator) => {
          const io = commandIo(variables);
          const code = await run(['--json'], io, { stepMs: setup.stepMs ?? 5_000, totalMs: 20_000 });
          const { ok, checks } = JSON.parse(io.printed()) as Examined;
          const failures = checks.filter(({ status }) => status === 'failed');
          expect(failures[0]).toEqual({
            name: setup.cause,
            status: 'failed',
            message: expect.stringMatching(setup.words),
            remedy: expect.stringMatching(/\w{3}.*\.$/),
          });
          expect({ ok, code }).toEqual({ ok: false, code: 1 });
          const follows = checks.filter(({ message }) => message.startsWith('Follows from'));
          for (const { status } of follows) expect(status).toBe('skipped');
          const secrets = {
            appToken: simulator.appToken,
            clientSecret: simulator.clientSecret,
            privateKey: simulator.application.privateKey,
            passwords: 's3cret-',
          };
          expect(secretsIn(io.printed() + io.complained(), secrets)).toEqual([]);
        });
      });
    }
  });
});
