import { parseArgs } from 'node:util';
import { CUSTOMER_ID_RULE, isCustomerId } from '../auth/access-token.js';
import { EXIT, UsageError, type CommandIo } from './command.js';
import { checkConfiguration } from './doctor/configuration.js';
import { checkConnections, LIMITS } from './doctor/connections.js';
import { Reporter, skipped } from './doctor/report.js';
import { readEnvironment, readHostConfiguration } from './host-configuration.js';

const HELP = `Usage: nestjs-service doctor [options]

Checks the configuration of ServiceModule, then connects to the service, and says what is wrong and how to fix it.
Reads the SERVICE_* variables from the environment, and from .env if that file exists. Its output contains no secret.

Options:
  --env-file <path>  read this file instead of .env. May be repeated: the first file that sets a variable wins
  --name <name>      check the module with this name: SERVICE_<NAME>_*
  --offline          check the configuration only, without any connection
  --customer <id>    also request a token for this customer
  --json             print { ok, environment, authentication, checks } instead of the table
  --help             show this text

Exit codes: 0 no check failed; 1 a check failed; 2 wrong usage, or an env file cannot be read
`;

export const OPTIONS = {
  'env-file': { type: 'string', multiple: true },
  name: { type: 'string' },
  offline: { type: 'boolean' },
  customer: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

export async function run(args: string[], io: CommandIo, limits = LIMITS): Promise<number> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (values.help) {
    io.out(HELP);
    return EXIT.ok;
  }
  const { name, customer, json = false, offline = false } = values;
  if (customer !== undefined && !isCustomerId(customer))
    throw new UsageError(`--customer must be ${CUSTOMER_ID_RULE}`);
  const variables = await readEnvironment(io, values['env-file']);
  const configuration = await readHostConfiguration(variables, name);
  const reporter = new Reporter(io, json);
  checkConfiguration({ ...configuration, ...variables, name }, reporter);
  const { identity, faults } = configuration;
  const options = faults.length === 0 ? configuration.options : undefined;
  if (!offline && options && identity) await checkConnections(options, identity, customer, limits, reporter);
  else if (!offline) reporter.add('api', skipped('Not checked, because the configuration is not valid yet.'));
  return reporter.end(options).ok ? EXIT.ok : EXIT.failed;
}
