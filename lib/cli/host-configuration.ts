import { NO_PROXY_VARIABLES, PROXY_VARIABLES } from '../config/address.js';
import { nameFault } from '../config/variables.js';
import { SILENT } from '../telemetry/log.js';
import { readConfiguration } from '../engine/read-configuration.js';
import { UsageError } from './command.js';
import { type Variables } from './env-file.js';

/** @throws UsageError if no module can have this name */
export function checkName(name: string | undefined): void {
  const fault = name === undefined ? undefined : nameFault(name);
  if (fault !== undefined) throw new UsageError(`--name: ${fault}`);
}

/**
 * Reads and checks the configuration as an application does at its start. Returns all faults instead of throwing them.
 *
 * @throws UsageError if no module can have this name
 */
export async function readHostConfiguration(variables: Variables, name: string | undefined) {
  checkName(name);
  // The proxy settings are read from process.env. ConfigModule copies the variables of env files there, so do the same.
  for (const variable of [...PROXY_VARIABLES, ...NO_PROXY_VARIABLES]) {
    const value = variables.get(variable);
    if (value !== undefined) process.env[variable] ??= value;
  }
  return readConfiguration({ name, given: {}, readVariable: variables.get }, SILENT);
}
