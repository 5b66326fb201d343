import { NO_PROXY_VARIABLES, PROXY_VARIABLES } from '../config/proxy.js';
import { nameFault } from '../config/variables.js';
import { SILENT } from '../exchange/io.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { UsageError } from './command.js';
import { type Variables } from './env-file.js';

/** @throws UsageError for a `--name` that no module can have */
export function checkName(name: string | undefined): void {
  const fault = name === undefined ? undefined : nameFault(name);
  if (fault !== undefined) throw new UsageError(`--name: ${fault}`);
}

/**
 * Reads and checks the configuration that the variables make, as an application does. Reports all its faults, throws none.
 * @throws UsageError as {@link checkName}
 */
export async function readHostConfiguration(variables: Variables, name: string | undefined) {
  checkName(name);
  // ConfigModule sets them for the process too, if only an env file has them.
  for (const variable of [...PROXY_VARIABLES, ...NO_PROXY_VARIABLES]) {
    const value = variables.get(variable);
    if (value !== undefined) process.env[variable] ??= value;
  }
  return readConfiguration({ name, given: {}, readVariable: variables.get }, SILENT);
}
