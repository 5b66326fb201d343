import { type CommandIo } from '../command.js';

type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

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

export const skipped = (message: string): Finding => ({ status: 'skipped', message });

/** What `--json` prints. */
export type DoctorReport = ReturnType<Reporter['end']>;

const NAME_WIDTH = 34;
const COLOURS: Readonly<Record<CheckStatus, number>> = { ok: 32, warning: 33, failed: 31, skipped: 90 };
const INDENT = ' '.repeat(9);

/**
 * Collects the checks, and prints them: each as a row as soon as it is done, or all at the end as JSON. Colours and progress
 * appear on a terminal only.
 */
export class Reporter {
  readonly #checks: Check[] = [];

  constructor(
    private readonly io: CommandIo,
    private readonly isJson: boolean,
  ) {}

  begin(name: string): void {
    if (this.io.errIsTerminal && !this.isJson) this.io.err(`\r\x1b[K${name} ...`);
  }

  add(name: string, { status, message, remedy }: Finding): void {
    this.#checks.push({ name, status, message, remedy });
    const row = `${this.#paint(status, status.padEnd(8))} ${name.padEnd(NAME_WIDTH)} ${message}\n`;
    this.#print(remedy === undefined ? row : `${row}${INDENT}${this.#paint(status, '->')} ${remedy}\n`);
  }

  hasFailed(name: string): boolean {
    return this.#checks.some((check) => check.name === name && check.status === 'failed');
  }

  /**
   * Prints the JSON, or the counts and, if checks failed, which one to look at first: later ones often follow from it.
   *
   * @param options absent if the configuration has a fault
   */
  end(options?: { environment: string; authentication: string }) {
    const { environment = null, authentication = null } = options ?? {};
    const checks = this.#checks;
    const first = checks.find(({ status }) => status === 'failed');
    const report = { ok: first === undefined, environment, authentication, checks };
    if (this.isJson) this.io.out(`${JSON.stringify(report, null, 2)}\n`);
    const count = (status: CheckStatus): number => checks.filter((check) => check.status === status).length;
    const warnings = count('warning') === 1 ? '1 warning' : `${count('warning')} warnings`;
    const counts = `${count('ok')} ok, ${warnings}, ${count('failed')} failed, ${count('skipped')} skipped`;
    this.#print(`\n${counts}.${first ? ` Start with ${first.name}.` : ''}\n`);
    return report;
  }

  /** Prints a part of the table in place of the line of progress. */
  #print(text: string): void {
    if (this.isJson) return;
    if (this.io.errIsTerminal) this.io.err('\r\x1b[K');
    this.io.out(text);
  }

  #paint(status: CheckStatus, text: string): string {
    const { outIsTerminal, env } = this.io;
    // https://no-color.org: any value except an empty one turns colours off.
    const hasColours = outIsTerminal && !env.NO_COLOR && env.TERM !== 'dumb';
    return hasColours ? `\x1b[${COLOURS[status]}m${text}\x1b[0m` : text;
  }
}
