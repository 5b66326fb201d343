import { type Check, type CheckStatus } from './doctor/check.js';
import { type CommandIo } from './command.js';
import { type DoctorReport, type CheckListener } from './examine.js';

const NAME_WIDTH = 34;
const COLOURS: Readonly<Record<CheckStatus, number>> = { ok: 32, warning: 33, failed: 31, skipped: 90 };
const INDENT = ' '.repeat(9);

/** Prints each check as a row as soon as it is done. Colours and progress appear on a terminal only. */
export class CheckTable implements CheckListener {
  readonly #io: CommandIo;
  readonly #isJson: boolean;
  readonly #hasColours: boolean;

  constructor(io: CommandIo, isJson: boolean) {
    this.#io = io;
    this.#isJson = isJson;
    // https://no-color.org: any value except an empty one turns colours off.
    this.#hasColours = io.outIsTerminal && !io.env.NO_COLOR && io.env.TERM !== 'dumb';
  }

  begin(name: string): void {
    if (this.#io.errIsTerminal && !this.#isJson) this.#io.err(`\r\x1b[K${name} ...`);
  }

  done({ name, status, message, remedy }: Check): void {
    if (this.#isJson) return;
    this.#clearProgress();
    const lines = [`${this.#paint(status, status.padEnd(8))} ${name.padEnd(NAME_WIDTH)} ${message}`];
    if (remedy !== undefined) lines.push(`${INDENT}${this.#paint(status, '->')} ${remedy}`);
    this.#io.out(`${lines.join('\n')}\n`);
  }

  /** Prints the counts and, if checks failed, which one to look at first: later ones often follow from it. */
  end({ checks }: DoctorReport): void {
    this.#clearProgress();
    const count = (status: CheckStatus): number => checks.filter((check) => check.status === status).length;
    const first = checks.find(({ status }) => status === 'failed');
    const warnings = count('warning') === 1 ? '1 warning' : `${count('warning')} warnings`;
    const counts = `${count('ok')} ok, ${warnings}, ${count('failed')} failed, ${count('skipped')} skipped`;
    this.#io.out(`\n${counts}.${first ? ` Start with ${first.name}.` : ''}\n`);
  }

  #clearProgress(): void {
    if (this.#io.errIsTerminal) this.#io.err('\r\x1b[K');
  }

  #paint(status: CheckStatus, text: string): string {
    return this.#hasColours ? `\x1b[${COLOURS[status]}m${text}\x1b[0m` : text;
  }
}

export function formatJson(report: DoctorReport): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}
