import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type BanksService } from '../banks/banks.service.js';
import { systemClock } from '../config/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type ConfigurationFault, ServiceError, ServiceStartupError, whatHappened } from '../errors/index.js';
import { type ServiceIo } from '../exchange/io.js';

/** Milliseconds: no start is held longer. */
const LIMIT_MS = 15_000;

/** The services that the check calls. */
export interface CheckedServices {
  auth: Pick<ServiceAuthService, 'getApiToken'>;
  banks: Pick<BanksService, 'list'>;
}

/**
 * What `startupCheck` asks for: a token where there is OAuth, and a call of the banks, over the client's own connections.
 * The token and they are then there for the first call.
 * @throws ServiceStartupError with `fail`, where one of the two fails
 */
export async function checkStart(
  options: ResolvedOptions,
  services: CheckedServices,
  { log }: Pick<ServiceIo, 'log'>,
): Promise<void> {
  if (options.startupCheck === 'off') return;
  const failure = await failureOf(options, services);
  if (!failure) return log.log('The start-up check passed.');
  const { check, fault } = failure;
  if (options.startupCheck === 'fail') throw new ServiceStartupError(check, fault);
  log.warn(`The start-up check failed (${check}): ${fault.message}`);
}

/** The first call that fails, and what its error says. */
async function failureOf(
  options: ResolvedOptions,
  { auth, banks }: CheckedServices,
): Promise<{ check: string; fault: ConfigurationFault } | undefined> {
  const endsAt = systemClock.monotonic() + Math.min(LIMIT_MS, options.http.timeout);
  const limit = () => ({ timeout: Math.max(1, endsAt - systemClock.monotonic()) });
  let check = 'token.api';
  try {
    if (options.oauth) await auth.getApiToken(limit());
    check = 'api.banks';
    await banks.list(limit());
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { hint = 'If it stays so, run npx nestjs-service doctor.' } = error;
    const [option = options.addresses.baseOption] = error.options ?? [];
    const variable = /\((\w+)\)$/.exec(options.describeOption(option))?.[1];
    return { check, fault: { option, variable, message: `${whatHappened(error)} ${hint}` } };
  }
}
