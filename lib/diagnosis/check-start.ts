import { type ServiceAuthService } from '../auth/index.js';
import { isCredentialRefusal } from '../auth/endpoint/token-errors.js';
import { type BanksService } from '../banks/banks.service.js';
import { keepProcessRunning, systemClock } from '../config/clock.js';
import { ServiceTokenError } from '../errors/index.js';
import { within } from '../exchange/timing.js';
import { type LocatedCheck } from './check.js';
import { diagnose, type DiagnosisParts } from './diagnose.js';

/** Milliseconds: no start is held longer. */
const TOTAL_MS = 15_000;
/** Of them for the token and the call; the rest is for finding out why they failed. */
const CALLS_MS = 6_000;
const STEP_MS = 5_000;

export interface StartParts extends Pick<DiagnosisParts, 'options' | 'identity' | 'agents'> {
  auth: ServiceAuthService;
  banks: BanksService;
}

/**
 * Gets a token where there is OAuth, and calls the banks, over the module's own connections: the token and they are then
 * there for the first call. Only where that fails, it looks for the cause. Never rejects.
 * @returns `passed`; `recovered` where the cause was gone when it was looked for; else the check that names the cause
 */
export async function checkStart(parts: StartParts): Promise<'passed' | 'recovered' | LocatedCheck> {
  const release = keepProcessRunning();
  try {
    const endsAt = systemClock.monotonic() + TOTAL_MS;
    const error = await tryCalls(parts);
    if (error === undefined) return 'passed';
    // A `tls` function that is asked again may be slow.
    const timeoutMs = endsAt - systemClock.monotonic();
    const limit = { clock: systemClock, timeoutMs, expired: () => error };
    return await within(limit, () => findCause(parts, error, endsAt)).catch(() => unexplained(parts, error));
  } finally {
    release();
  }
}

/** @returns what the calls failed with */
async function tryCalls({ options, auth, banks }: StartParts): Promise<Error | undefined> {
  const timeout = Math.min(CALLS_MS, options.http.timeout);
  const signal = AbortSignal.timeout(timeout);
  try {
    if (options.oauth) await auth.getApiToken({ timeout, signal });
    await banks.list({ timeout, signal });
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

async function findCause(
  parts: StartParts,
  error: Error,
  endsAt: number,
): Promise<'recovered' | LocatedCheck> {
  const { options } = parts;
  const checks = diagnose({
    ...parts,
    clock: systemClock,
    env: process.env,
    stepMs: Math.min(STEP_MS, options.http.timeout),
    totalMs: endsAt - systemClock.monotonic(),
    refusal: error instanceof ServiceTokenError && isCredentialRefusal(error) ? error : undefined,
  });
  for await (const check of checks) {
    if (check.status === 'failed') return check;
    if (check.name === 'api.banks' && check.status !== 'skipped') return 'recovered';
  }
  return unexplained(parts, error);
}

function unexplained({ options }: StartParts, error: Error): LocatedCheck {
  return {
    name: 'api.banks',
    status: 'failed',
    message: error.message,
    remedy: 'Run npx nestjs-service doctor, which has more time to find the cause.',
    option: options.addresses.baseOption,
  };
}
