import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../../../lib/cli/run-command.js';
import { commandIo } from '../../helpers/command-io.js';

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')) as {
  version: string;
};

describe('nestjs-service', () => {
  it('says what it can do, and its version', async () => {
    for (const argument of ['--help', '-h', 'help']) {
      const io = commandIo();
      expect(await runCommand([argument], io)).toBe(0);
      expect(io.printed()).toMatch(
        /^Usage: nestjs-service <command>[^]*\n {2}doctor {5}say .*\n {2}call {7}make .*\n {2}simulator {2}run /,
      );
    }
    for (const argument of ['--version', '-v']) {
      const io = commandIo();
      expect(await runCommand([argument], io)).toBe(0);
      expect(io.printed()).toBe(`${manifest.version}\n`);
    }
  });

  it('does not take a fault of its own for wrong usage', async () => {
    const fault = new Error('of its own');
    const io = {
      ...commandIo(),
      out: () => {
        throw fault;
      },
    };
    await expect(runCommand(['doctor', '--help'], io)).rejects.toBe(fault);
    expect(io.complained()).toBe('');
  });

  for (const [what, args] of Object.entries({
    'no command': [],
    'a command that there is not': ['docter'],
    'a name of every object': ['constructor'],
    'an option that the command does not have': ['doctor', '--ofline'],
    'an argument that nothing takes': ['doctor', 'production'],
  })) {
    it(`ends with 2 for ${what}, and prints nothing where results go`, async () => {
      const io = commandIo();
      expect(await runCommand(args, io)).toBe(2);
      expect(io.printed()).toBe('');
      expect(io.complained()).toMatch(/nestjs-service/);
    });
  }
});
