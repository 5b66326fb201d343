import { parseArgs } from 'node:util';
import { EXIT, type CommandIo } from './command.js';

const HELP = `Usage: nestjs-service doctor [options]

Says what is wrong with the configuration of ServiceModule, and what to do.

Options:
  --help  this text
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  parseArgs({ args, options: { help: { type: 'boolean', short: 'h' } } });
  io.out(HELP);
  return Promise.resolve(EXIT.ok);
}
