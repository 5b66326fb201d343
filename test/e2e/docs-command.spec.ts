import { beforeAll, describe, expect, it } from '@jest/globals';
import { parseArgs } from 'node:util';
import { CALL_OPTIONS } from '../../lib/cli/call.js';
import { type Examined } from '../../lib/cli/examine.js';
import { OPTIONS as DOCTOR_OPTIONS, run } from '../../lib/cli/doctor.js';
import { readSimulatorOptions, SIMULATOR_HELP } from '../../lib/cli/simulator-options.js';
import { commandIo } from '../helpers/command-io.js';
import { readDocument } from '../helpers/readme.js';
import { simulatorsOfBlock } from '../helpers/simulators.js';

const LIMITS = { stepMs: 10_000, totalMs: 20_000 };

describe('docs/command.md', () => {
  const startSimulator = simulatorsOfBlock();
  let document: Awaited<ReturnType<typeof readDocument>>;

  beforeAll(async () => {
    document = await readDocument('docs/command.md');
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

  it('names each option of a call, and has calls that it takes', () => {
    const section = document.text.split('\n## Call\n')[1]?.split('\n## ')[0] ?? '';
    const unnamed = Object.keys(CALL_OPTIONS).filter((name) => !section.includes(`\`--${name}\``));
    expect(unnamed).toEqual(['help']);
    const lines = [...section.matchAll(/^npx nestjs-service call (\w+) (\S+)(?: --data '(.*)')?$/gm)];
    expect(lines.map(([, method, path]) => `${method} ${path}`)).toEqual([
      'GET /banks/v1',
      'POST /customers/v1',
    ]);
    expect(JSON.parse(lines[1]?.[3] ?? '')).toEqual({ app_user_id: 'u-1' });
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

  it('names the keys that --json prints', async () => {
    const simulator = await startSimulator();
    const { SERVICE_APP_TOKEN: _, ...variables } = simulator.env();
    const io = commandIo(variables);
    await run(['--json', '--offline'], io, LIMITS);
    const printed = JSON.parse(io.printed()) as Examined;
    const keysOf = (value: object) => Object.keys(value).join(', ');
    const failed = printed.checks.find(({ status }) => status === 'failed') ?? {};
    const [first, last] = keysOf(failed).split(/, (?=remedy)/);
    expect(document.text).toContain(`{ ${keysOf(printed)}: [{ ${first}, ${last}? }] }`);
  });

  it('names the options and faults of the command as its help does', () => {
    const options = [
      ...SIMULATOR_HELP.matchAll(/^ {2}(--(?!help)[a-z-]+(?: <[^\n]*?>\S*)?)(?: {2}|$)/gm),
    ].map(([, option = '']) => option);
    expect(options).toHaveLength(9);
    const faults = /or one of:\n\s+([^.]+)\./.exec(SIMULATOR_HELP)?.[1]?.split(', ') ?? [];
    expect(faults).toHaveLength(6);
    const section = document.text.split('\n## Simulator\n')[1] ?? '';
    expect([...options, ...faults].filter((each) => !section.includes(`\`${each}\``))).toEqual([]);
  });

  it('has a compose file with a command that the simulator takes', async () => {
    const [, args = ''] = /main\.js simulator (.+)$/m.exec(document.text) ?? [];
    expect(await readSimulatorOptions(args.split(' '), '/app')).toMatchObject({
      host: '0.0.0.0',
      serverNames: ['simulator'],
      folder: '/simulator',
      ports: { baseUrl: 8443 },
    });
  });
});
