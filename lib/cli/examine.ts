import 'reflect-metadata';
import { createClient, systemIo } from '../engine/create-client.js';
import { SILENT } from '../exchange/io.js';
import { type Check, skipped } from './doctor/check.js';
import { ClockCheck } from './doctor/clock.js';
import { checkConfiguration } from './doctor/configuration-checks.js';
import { runSteps, type StepLimits } from './doctor/run-steps.js';
import { steps } from './doctor/steps.js';
import { type Variables } from './env-file.js';
import { readHostConfiguration } from './host-configuration.js';

export interface Examination {
  name?: string;
  variables: Variables;
  offline: boolean;
  /** Of which a token is asked for. */
  customer?: string;
  limits: StepLimits;
}

/** Hears of each check when it begins and when it is done. */
export interface Listener {
  begin(name: string): void;
  done(check: Check): void;
}

export interface Examined {
  ok: boolean;
  /** Null if the configuration is at fault. */
  environment: string | null;
  authentication: string | null;
  checks: Check[];
}

/** Checks the configuration that the variables make, then the way to the service. */
export async function examine(
  { name, variables, offline, customer, limits }: Examination,
  listener: Listener,
): Promise<Examined> {
  const read = await readHostConfiguration(variables, name);
  const { identity, faults } = read;
  const options = faults.length === 0 ? read.options : undefined;
  const checks: Check[] = [];
  const tell = ({ name, status, message, remedy }: Check): void => {
    const check = { name, status, message, ...(remedy === undefined ? {} : { remedy }) };
    checks.push(check);
    listener.done(check);
  };
  try {
    const certificates = options && identity?.loaded;
    const reading = { ...read, ...variables, name, options, certificates, now: Date.now() };
    for (const check of checkConfiguration(reading)) tell(check);
    if (!offline && options && identity) {
      const { exchange, ...world } = systemIo(SILENT);
      const clock = new ClockCheck(exchange);
      const http = { ...options.http, retries: 0, shutdownTimeout: 0 };
      const once = { ...options, tokenStore: undefined, http };
      const service = createClient(once, identity, { ...world, exchange: clock.exchange });
      const all = steps(options, identity, service, customer);
      try {
        for await (const check of runSteps(all, limits, (name) => listener.begin(name))) tell(check);
        tell({ name: 'clock', ...clock.judge() });
      } finally {
        await service.close();
      }
    } else if (!offline) tell({ name: 'api', ...skipped('The configuration comes first.') });
  } finally {
    await identity?.close();
  }
  const { environment = null, authentication = null } = options ?? {};
  return { ok: checks.every(({ status }) => status !== 'failed'), environment, authentication, checks };
}
