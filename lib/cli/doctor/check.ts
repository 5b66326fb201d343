export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

/** What one check found. Nothing in it is secret. */
export interface Check {
  /** Stable: a variable's name, or for example `api.tls`. */
  name: string;
  status: CheckStatus;
  message: string;
  /** What to do. Always there where the status is `failed`. */
  remedy?: string;
}

/** What a check found, and where that is corrected. */
export interface Finding extends Omit<Check, 'name'> {
  /** The path of the option to correct; `environment` where none is more to blame. */
  option?: string;
}

export interface LocatedCheck extends Check {
  option?: string;
}

export const ok = (message: string): Finding => ({ status: 'ok', message });

export const warning = (message: string, remedy: string, option?: string): Finding => ({
  status: 'warning',
  message,
  remedy,
  option,
});

export const failed = (message: string, remedy: string, option?: string): Finding => ({
  status: 'failed',
  message,
  remedy,
  option,
});

export const skipped = (message: string, remedy?: string): Finding => ({
  status: 'skipped',
  message,
  remedy,
});

/** As a sentence begins. A name of a host or an option at the beginning stays as it is. */
export function capital(text: string): string {
  return text.replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase());
}
