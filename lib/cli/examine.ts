import 'reflect-metadata';
import { createClient, systemIo } from '../engine/create-client.js';
import { SILENT } from '../telemetry/log.js';
import { type Check, skipped } from './doctor/check.js';
import { ClockCheck } from './doctor/clock.js';
import { checkConfiguration } from './doctor/configuration-checks.js';
import { runSteps, type StepLimits } from './doctor/run-steps.js';
import { makeSteps } from './doctor/steps.js';
import { type Variables } from './env-file.js';
import { readHostConfiguration } from './host-configuration.js';

interface DoctorOptions {
  /** The name of the module to check. */
  name?: string;
  variables: Variables;
  offline: boolean;
  /** The id of a customer whose token is requested too. */
  customer?: string;
  limits: StepLimits;
}

export interface CheckListener {
  begin(name: string): void;
  done(check: Check): void;
}

export interface DoctorReport {
  ok: boolean;
  /** Null if the configuration has a fault. */
  environment: string | null;
  authentication: string | null;
  checks: Check[];
}

/** Checks the configuration, then connects to the service. */
export async function examine(
  { name, variables, offline, customer, limits }: DoctorOptions,
  listener: CheckListener,
): Promise<DoctorReport> {
  const read = await readHostConfiguration(variables, name);
  const { identity, faults } = read;
  const options = faults.length === 0 ? read.options : undefined;
  const checks: Check[] = [];
  const report = ({ name, status, message, remedy }: Check): void => {
    const check = { name, status, message, ...(remedy === undefined ? {} : { remedy }) };
    checks.push(check);
    listener.done(check);
  };
  try {
    const certificates = options && identity?.loaded;
    const reading = { ...read, ...variables, name, options, certificates, now: Date.now() };
    for (const check of checkConfiguration(reading)) report(check);
    if (!offline && options && identity) {
      const { exchange, ...realIo } = systemIo(SILENT);
      const clock = new ClockCheck(exchange);
      const http = { ...options.http, retries: 0, shutdownTimeout: 0 };
      const once = { ...options, tokenStore: undefined, http };
      const service = createClient(once, identity, { ...realIo, exchange: clock.exchange });
      const steps = makeSteps(options, identity, service, customer);
      try {
        for await (const check of runSteps(steps, limits, (name) => listener.begin(name))) report(check);
        report({ name: 'clock', ...clock.judge() });
      } finally {
        await service.close();
      }
    } else if (!offline)
      report({ name: 'api', ...skipped('Not checked, because the configuration is not valid yet.') });
  } finally {
    await identity?.close();
  }
  const { environment = null, authentication = null } = options ?? {};
  return { ok: checks.every(({ status }) => status !== 'failed'), environment, authentication, checks };
}
