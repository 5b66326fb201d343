import { VERSION } from '../version.js';
import { EXIT, UsageError, type Command, type CommandIo } from './command.js';

interface CommandEntry {
  what: string;
  /** Loads what this command needs, and nothing that only another one needs. */
  load(): Promise<Command>;
}

const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  doctor: {
    what: 'say what is wrong with a configuration, and what to do',
    load: () => import('./doctor.js'),
  },
  call: {
    what: 'make one call with the configuration of the application',
    load: () => import('./call.js'),
  },
  simulator: {
    what: 'run the simulated service, for applications in any language',
    load: () => import('./simulator.js'),
  },
};

/** Runs the command that the arguments name. Rejects only for what is a fault of this package. */
export async function runCommand([name, ...args]: string[], io: CommandIo): Promise<number> {
  if (name === '--help' || name === '-h' || name === 'help') return print(io, usage());
  if (name === '--version' || name === '-v') return print(io, `${VERSION}\n`);
  const entry = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!entry) {
    io.err(`${name === undefined ? '' : `There is no command ${JSON.stringify(name)}.\n\n`}${usage()}`);
    return EXIT.usage;
  }
  try {
    const command = await entry.load();
    return await command.run(args, io);
  } catch (error) {
    if (!isUsageError(error)) throw error;
    io.err(`${error.message}\nSee: nestjs-service ${name} --help\n`);
    return EXIT.usage;
  }
}

/** Those of `parseArgs` by their code: a test's Error is of another realm. */
function isUsageError(error: unknown): error is Error {
  if (error instanceof UsageError) return true;
  return String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS_');
}

function print(io: CommandIo, text: string): number {
  io.out(text);
  return EXIT.ok;
}

function usage(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { what }]) => `  ${name.padEnd(width)}  ${what}`);
  return `Usage: nestjs-service <command> [options]

Commands:
${lines.join('\n')}

Options:
  --help     this text; after a command, that command's options
  --version  the version of this package
`;
}
