import { VERSION } from '../version.js';
import { EXIT, UsageError, type Command, type CommandIo } from './command.js';

/** Each command is loaded when it is used, so that the simulator, for example, needs neither NestJS nor class-validator. */
const COMMANDS: Readonly<Record<string, [what: string, load: () => Promise<Command>]>> = {
  doctor: ['check the configuration and the connections to the service', () => import('./doctor.js')],
  call: ['make one call with the configuration of the application', () => import('./call.js')],
  simulator: ['run a simulated service, for applications in any language', () => import('./simulator.js')],
};

const USAGE = `Usage: nestjs-service <command> [options]

Commands:
${Object.entries(COMMANDS)
  .map(([name, [what]]) => `  ${name.padEnd(9)}  ${what}`)
  .join('\n')}

Options:
  --help     show this text; after a command, its options
  --version  show the version of this package
`;

/** Runs the command that the arguments name, and returns its exit code. Rejects only because of a bug of this package. */
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
    // Errors of `parseArgs` are recognised by their code, because in Jest they come from another realm.
    const { code, message } = error as NodeJS.ErrnoException;
    if (!(error instanceof UsageError || String(code).startsWith('ERR_PARSE_ARGS_'))) throw error;
    io.err(`${message}\nSee: nestjs-service ${name} --help\n`);
    return EXIT.usage;
  }
}
