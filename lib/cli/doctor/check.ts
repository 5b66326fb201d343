export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

/** What one check found. Nothing in it is secret. */
export interface Check {
  /** Stable: a variable's name, or for example `api.tls`. */
  name: string;
  status: CheckStatus;
  message: string;
  /** What to do. Always there if the status is `failed`. */
  remedy?: string;
}

export type Finding = Omit<Check, 'name'>;

export const ok = (message: string): Finding => ({ status: 'ok', message });

export const warning = (message: string, remedy: string): Finding => ({ status: 'warning', message, remedy });

export const failed = (message: string, remedy: string): Finding => ({ status: 'failed', message, remedy });

export const skipped = (message: string, remedy?: string): Finding => ({
  status: 'skipped',
  message,
  remedy,
});

/** As a sentence begins. A name of a host or an option at the beginning stays as it is. */
export function capital(text: string): string {
  return text.replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase());
}
