import { VERSION } from '../version.js';
import { EXIT, UsageError, type Command, type CommandIo } from './command.js';

/** What each does. It loads what it needs, and nothing that only another one needs. */
const COMMANDS: Readonly<Record<string, [what: string, load: () => Promise<Command>]>> = {
  doctor: ['say what is wrong with a configuration, and what to do', () => import('./doctor.js')],
  call: ['make one call with the configuration of the application', () => import('./call.js')],
  simulator: ['run the simulated service, for applications in any language', () => import('./simulator.js')],
};

const USAGE = `Usage: nestjs-service <command> [options]

Commands:
${Object.entries(COMMANDS)
  .map(([name, [what]]) => `  ${name.padEnd(9)}  ${what}`)
  .join('\n')}

Options:
  --help     this text; after a command, that command's options
  --version  the version of this package
`;

/** Runs the command that the arguments name. Rejects only for what is a fault of this package. */
export async function runCommand([name = '', ...args]: string[], io: CommandIo): Promise<number> {
  if (['--help', '-h', 'help', '--version', '-v'].includes(name)) {
    io.out(/v/.test(name) ? `${VERSION}\n` : USAGE);
    return EXIT.ok;
  }
  if (!Object.hasOwn(COMMANDS, name)) {
    io.err(`${name === '' ? '' : `There is no command ${JSON.stringify(name)}.\n\n`}${USAGE}`);
    return EXIT.usage;
  }
  try {
    const [, load] = COMMANDS[name];
    return await (await load()).run(args, io);
  } catch (error) {
    // Those of `parseArgs` by their code: a test's Error is of another realm.
    const { code, message } = error as NodeJS.ErrnoException;
    if (!(error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS_'))) throw error;
    io.err(`${message}\nSee: nestjs-service ${name} --help\n`);
    return EXIT.usage;
  }
}
