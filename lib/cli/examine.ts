import 'reflect-metadata';
import { systemClock } from '../time/clock.js';
import { modeOf } from '../config/mode.js';
import { type Check } from './doctor/check.js';
import { checkConfiguration } from './doctor/configuration-checks.js';
import { diagnose, type DiagnosisParts } from './doctor/diagnose.js';
import { type StepLimits } from './doctor/run-steps.js';
import { type Variables } from './env-file.js';
import { readHostConfiguration } from './host-configuration.js';

export interface Examination {
  name?: string;
  variables: Variables;
  offline: boolean;
  /** Of which a token is asked for. */
  customer?: string;
  limits: Pick<StepLimits, 'stepMs' | 'totalMs'>;
}

/** Hears of each check when it begins and when it is done. */
export interface Listener {
  begin(name: string): void;
  done(check: Check): void;
}

export interface Examined {
  ok: boolean;
  /** Null if the variable holds something else. */
  environment: string | null;
  authentication: string | null;
  checks: Check[];
}

/** Checks the configuration that the variables make, then the way to the service. */
export async function examine(examination: Examination, listener: Listener): Promise<Examined> {
  const { name, variables, offline } = examination;
  const read = await readHostConfiguration(variables, name);
  const { merged, identity, faults, certificateFaults } = read;
  const all = [...faults, ...certificateFaults];
  const options = all.length === 0 ? read.options : undefined;
  const checks: Check[] = [];
  const tell = ({ name, status, message, remedy }: Check): void => {
    const check = { name, status, message, ...(remedy === undefined ? {} : { remedy }) };
    checks.push(check);
    listener.done(check);
  };
  try {
    const certificates = options && identity?.loaded;
    const reading = { ...read, ...variables, name, faults: all, options, certificates };
    for (const check of checkConfiguration({ ...reading, now: systemClock.now() })) tell(check);
    const usable = options && identity && { options, identity };
    if (!offline && usable) await checkOnline(examination, usable, listener, tell);
    if (!offline && !usable) skipOnline(checks, tell);
  } finally {
    await identity?.close();
  }
  const mode = modeOf(merged, new Set());
  return {
    ok: checks.every(({ status }) => status !== 'failed'),
    environment: oneOf(['production', 'sandbox'], mode.environment),
    authentication: oneOf(['mtls', 'oauth', 'app-token'], mode.authentication),
    checks,
  };
}

async function checkOnline(
  { customer, limits }: Examination,
  usable: Pick<DiagnosisParts, 'options' | 'identity'>,
  listener: Listener,
  tell: (check: Check) => void,
): Promise<void> {
  const onBegin = (name: string): void => listener.begin(name);
  const parts = { ...usable, clock: systemClock, customer, ...limits, onBegin };
  for await (const check of diagnose(parts)) tell(check);
}

function skipOnline(checks: readonly Check[], tell: (check: Check) => void): void {
  const cause = checks.find(({ status }) => status === 'failed')?.name ?? 'the configuration';
  for (const name of ['api', 'token', 'clock']) {
    tell({ name, status: 'skipped', message: `Follows from ${cause}.` });
  }
}

function oneOf(values: readonly string[], value: unknown): string | null {
  return typeof value === 'string' && values.includes(value) ? value : null;
}
