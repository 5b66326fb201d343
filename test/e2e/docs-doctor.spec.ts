import { beforeAll, describe, expect, it } from '@jest/globals';
import { parseArgs } from 'node:util';
import { type Examined } from '../../lib/cli/examine.js';
import { OPTIONS as DOCTOR_OPTIONS, run } from '../../lib/cli/doctor.js';
import { commandIo } from '../helpers/command-io.js';
import { readDocument } from '../helpers/readme.js';
import { simulatorsOfBlock } from '../helpers/simulators.js';

const LIMITS = { stepMs: 10_000, totalMs: 20_000 };

describe('docs/doctor.md', () => {
  const startSimulator = simulatorsOfBlock();
  let document: Awaited<ReturnType<typeof readDocument>>;

  beforeAll(async () => {
    document = await readDocument('docs/doctor.md');
  });

  const rowsBelow = (head: RegExp): string[] => {
    const table =
      new RegExp(`${head.source}.*\\n\\|[-| ]+\\n((?:\\|.*\\n)+)`, 'm').exec(document.text)?.[1] ?? '';
    return table.split('\n').flatMap((row) => /^\| +(.*?) +\|/.exec(row)?.[1] ?? []);
  };

  it('names each option of the doctor, and no other', () => {
    const named = rowsBelow(/^\| option +\| what it does/).map((cell) => /^`--([\w-]+)/.exec(cell)?.[1]);
    expect(named).toEqual(Object.keys(DOCTOR_OPTIONS).filter((name) => name !== 'help'));
  });

  it('has commands that the doctor takes', () => {
    const lines = document.fences
      .filter(({ language, text }) => language === 'sh' && text.includes('doctor'))
      .map(({ text }) => text.trim());
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) {
      const [, args] = line.split(/(?:npx nestjs-service|dist\/cli\/main\.js) doctor/);
      parseArgs({ args: args.split(' ').filter(Boolean), options: DOCTOR_OPTIONS });
    }
  });

  it('names the checks as they are', async () => {
    const simulator = await startSimulator();
    const io = commandIo({
      ...simulator.env({ environment: 'production', authentication: 'oauth', clientCertificate: true }),
    });
    await run(['--json'], io, LIMITS);
    const { checks } = JSON.parse(io.printed()) as Examined;
    const cells = rowsBelow(/^\| name +\| what it checks/).join(' ');
    const documented = [...cells.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    const undocumented = checks
      .map(({ name }) => name)
      .filter((name) => !/^SERVICE_/.test(name) && !documented.includes(name))
      .filter((name) => !documented.includes(name.replace(/\..*/, '.*')));
    expect(undocumented).toEqual([]);
  });

  it('shows JSON as the doctor prints it', async () => {
    const simulator = await startSimulator();
    const { SERVICE_APP_TOKEN: _, ...variables } = simulator.env();
    const io = commandIo(variables);
    await run(['--json', '--offline'], io, LIMITS);
    const printed = JSON.parse(io.printed()) as Examined;
    const [shown] = document.fences
      .filter(({ language, text }) => language === 'json' && text.includes('"checks"'))
      .map(({ text }) => JSON.parse(text) as Examined);
    expect(Object.keys(shown)).toEqual(Object.keys(printed));
    expect(shown.environment).toEqual(printed.environment);
    expect(shown.authentication).toEqual(printed.authentication);
    const [{ remedy: __, ...cause }] = shown.checks;
    expect(printed.checks).toContainEqual({ ...cause, remedy: expect.any(String) });
  });
});
