import { type ServiceAuthService } from '../auth/service-auth.service.js';
import { type BanksService } from '../banks/banks.service.js';
import { systemClock } from '../time/clock.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { ServiceError, ServiceStartupError, whatHappened } from '../errors/index.js';
import { type Log } from '../exchange/io.js';

/** Milliseconds that a start takes longer at most. */
const LIMIT_MS = 15_000;

/**
 * Does the `startupCheck`: gets a token, with OAuth, and calls the banks, over the client's own connections. Token and
 * connections are then ready for the first call.
 * @throws ServiceStartupError with `fail`, if one of the two fails
 */
export async function checkStart(
  options: ResolvedOptions,
  auth: Pick<ServiceAuthService, 'getApiToken'>,
  banks: Pick<BanksService, 'list'>,
  log: Log,
): Promise<void> {
  if (options.startupCheck === 'off') return;
  const endsAt = systemClock.monotonic() + Math.min(LIMIT_MS, options.http.timeout);
  const limit = () => ({ timeout: Math.max(1, endsAt - systemClock.monotonic()) });
  let check = 'token.api';
  try {
    if (options.oauth) await auth.getApiToken(limit());
    check = 'api.banks';
    await banks.list(limit());
    log.log('The start-up check passed.');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { hint = 'If it stays so, run npx nestjs-service doctor.' } = error;
    const message = `${whatHappened(error)} ${hint}`;
    if (options.startupCheck === 'warn') return log.warn(`The start-up check failed (${check}): ${message}`);
    const [option = options.addresses.baseOption] = error.options ?? [];
    throw new ServiceStartupError(check, { ...options.locate(option), message });
  }
}
