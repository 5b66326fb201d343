import { parseArgs } from 'node:util';
import { CUSTOMER_ID_RULE, isCustomerId } from '../auth/scope.js';
import { EXIT, UsageError, type CommandIo } from './command.js';
import { readEnvironment } from './env-file.js';
import { examine } from './examine.js';
import { jsonOutput, Table } from './doctor-output.js';

const HELP = `Usage: nestjs-service doctor [options]

Says what is wrong with the configuration of ServiceModule and with the way to the service, and what to do.
It reads the SERVICE_* variables of the environment, and of .env if there is one. Its output holds no secret.

Options:
  --env-file <path>  read this file in place of .env; may be given several times, the first counts first
  --name <name>      check the module with this name: SERVICE_<NAME>_*
  --offline          connect to nothing
  --customer <id>    ask for a token of this customer too
  --json             print { ok, environment, authentication, checks } in place of the table
  --help             this text

Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage or an env file that cannot be read
`;

export const OPTIONS = {
  'env-file': { type: 'string', multiple: true },
  name: { type: 'string' },
  offline: { type: 'boolean' },
  customer: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Milliseconds for one check, and for all that connect. */
const LIMITS = { stepMs: 10_000, totalMs: 60_000 };

export async function run(args: string[], io: CommandIo, limits = LIMITS): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (values.help) {
    io.out(HELP);
    return EXIT.ok;
  }
  const { name, customer, json = false, offline = false } = values;
  if (customer !== undefined && !isCustomerId(customer)) {
    throw new UsageError(`--customer: takes ${CUSTOMER_ID_RULE}`);
  }
  const variables = await readEnvironment(io, values['env-file']);
  const table = new Table(io, json);
  const examined = await examine({ name, variables, offline, customer, limits }, table);
  if (json) io.out(jsonOutput(examined));
  else table.end(examined);
  return examined.checks.some(({ status }) => status === 'failed') ? EXIT.failed : EXIT.ok;
}
