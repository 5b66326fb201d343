import { type LocatedCheck } from '../diagnosis/check.js';
import { type StartParts } from '../diagnosis/check-start.js';
import { ServiceStartupError } from '../errors/index.js';
import { type Log } from '../telemetry/log.js';

/**
 * What `startupCheck` asks for, before the application listens.
 * @throws ServiceStartupError with `fail`, where the service cannot be reached as it should
 */
export async function runStartupCheck(parts: StartParts, log: Log): Promise<void> {
  const { startupCheck } = parts.options;
  if (startupCheck === 'off') return;
  // Only here: few starts need it.
  const { checkStart } = await import('../diagnosis/check-start.js');
  const outcome = await checkStart(parts);
  if (outcome === 'passed') return log.log('The start-up check passed.');
  if (outcome === 'recovered') {
    return log.warn('The start-up check failed at first, and passed when the cause was looked for.');
  }
  if (startupCheck === 'fail') throw startupError(outcome, parts);
  log.warn(`The start-up check failed (${outcome.name}): ${said(outcome)}`);
}

function startupError(check: LocatedCheck, { options }: StartParts): ServiceStartupError {
  const { option = options.addresses.baseOption } = check;
  const [, variable] = / \((\w+)\)$/.exec(options.describeOption(option)) ?? [];
  return new ServiceStartupError(check.name, { option, variable, message: said(check) });
}

function said({ message, remedy }: LocatedCheck): string {
  return remedy === undefined ? message : `${message} ${remedy}`;
}
