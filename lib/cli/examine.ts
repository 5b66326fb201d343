import 'reflect-metadata';
import { systemClock } from '../config/clock.js';
import { VARIABLE_SUFFIXES, variablePrefix, variablesOf } from '../config/variables.js';
import { type Check } from '../diagnosis/check.js';
import { checkConfiguration } from '../diagnosis/configuration-checks.js';
import { diagnose } from '../diagnosis/diagnose.js';
import { readMaterial } from '../diagnosis/material.js';
import { readConfiguration, type ReadConfiguration } from '../module/read-configuration.js';
import { Agents } from '../tls/index.js';
import { type Variables } from './env-file.js';

/** Milliseconds for one check, and for all that connect. */
const STEP_MS = 10_000;
const TOTAL_MS = 60_000;

export interface Examination {
  name?: string;
  variables: Variables;
  offline: boolean;
  /** Of which a token is asked for. */
  customer?: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** Hears of each check when it begins and when it is done. */
export interface Listener {
  begin(name: string): void;
  done(check: Check): void;
}

export interface Examined {
  ok: boolean;
  /** Null where the variable holds something else. */
  environment: string | null;
  authentication: string | null;
  checks: Check[];
}

/** Checks the configuration that the variables make, then the way to the service. */
export async function examine(examination: Examination, listener: Listener): Promise<Examined> {
  const { name, variables } = examination;
  const sources = { name, given: {}, readVariable: variables.get, variablesSet: variables.set };
  const configuration = await readConfiguration(sources, () => undefined);
  const checks: Check[] = [];
  const tell = (check: Check): void => {
    checks.push(check);
    listener.done(check);
  };
  try {
    const isUsable = await checkOffline(examination, configuration, tell);
    if (!examination.offline)
      await checkOnline(examination, configuration, isUsable ? undefined : causeIn(checks), listener, tell);
  } finally {
    await configuration.identity?.close();
  }
  const { options, merged } = configuration;
  return {
    ok: checks.every(({ status }) => status !== 'failed'),
    environment: options?.environment ?? oneOf(['production', 'sandbox'], merged.environment ?? 'sandbox'),
    authentication: options?.authentication ?? oneOf(['mtls', 'oauth', 'app-token'], merged.authentication),
    checks,
  };
}

/** @returns whether the configuration can be used */
async function checkOffline(
  { name, variables }: Examination,
  { merged, options, faults, certificateFaults, warnings, misspelt }: ReadConfiguration,
  tell: (check: Check) => void,
): Promise<boolean> {
  const all = [...faults, ...certificateFaults];
  const usable = all.length === 0 ? options : undefined;
  const reading = {
    name,
    merged,
    faults: all,
    warnings,
    misspelt,
    unknown: unknownIn(variables, misspelt, name),
    sourceOf: variables.sourceOf,
    sources: variables.sources,
    options: usable,
    certificates: usable && (await readMaterial(usable, systemClock)),
    now: systemClock.now(),
  };
  for (const check of checkConfiguration(reading)) tell(check);
  return usable !== undefined;
}

async function checkOnline(
  { customer, env }: Examination,
  { options, identity }: ReadConfiguration,
  cause: string | undefined,
  listener: Listener,
  tell: (check: Check) => void,
): Promise<void> {
  if (cause !== undefined || !options || !identity) {
    for (const check of ['api', 'token', 'clock']) {
      tell({ name: check, status: 'skipped', message: `Follows from ${cause}.` });
    }
    return;
  }
  const agents = new Agents(identity, options.http.maxSockets);
  const parts = {
    options,
    identity,
    agents,
    clock: systemClock,
    env,
    customer: { id: customer },
    stepMs: STEP_MS,
    totalMs: TOTAL_MS,
    onBegin: (name: string) => listener.begin(name),
  };
  try {
    for await (const { name, status, message, remedy } of diagnose(parts)) {
      tell({ name, status, message, ...(remedy === undefined ? {} : { remedy }) });
    }
  } finally {
    await agents.close();
  }
}

function causeIn(checks: readonly Check[]): string {
  return checks.find(({ status }) => status === 'failed')?.name ?? 'the configuration';
}

/**
 * Names of an env file with our prefix that nothing reads. In the environment they may well be of others: Kubernetes sets
 * SERVICE_HOST. What ends as one of ours is of a module with another name.
 */
function unknownIn({ inFiles }: Variables, misspelt: ReadonlyMap<string, string>, name?: string): string[] {
  const known = new Set(variablesOf(name));
  const prefix = variablePrefix(name);
  return [...new Set(inFiles)].filter(
    (variable) =>
      variable.startsWith(prefix) &&
      !known.has(variable) &&
      !misspelt.has(variable) &&
      !VARIABLE_SUFFIXES.some((suffix) => variable.endsWith(`_${suffix}`)),
  );
}

function oneOf(values: readonly string[], value: unknown): string | null {
  return typeof value === 'string' && values.includes(value) ? value : null;
}
