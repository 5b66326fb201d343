export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

/** The result of one check. It contains nothing secret. */
export interface Check {
  /** A variable's name, or a name such as `api.connection`. Scripts may rely on it. */
  name: string;
  status: CheckStatus;
  message: string;
  /** What to do. Always present if the status is `failed`. */
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

/** Capitalizes the first word, but not a host or option name: `api.service.example refused ...` stays as it is. */
export function capitalize(text: string): string {
  return text.replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase());
}
