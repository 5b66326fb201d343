import { type Check, type CheckStatus } from './doctor/check.js';
import { type CommandIo } from './command.js';
import { type Examined, type Listener } from './examine.js';

const NAME_WIDTH = 34;
const COLOURS: Readonly<Record<CheckStatus, number>> = { ok: 32, warning: 33, failed: 31, skipped: 90 };
const INDENT = ' '.repeat(9);

/** The checks as a table, line by line as they are done. Colours and progress on a terminal only. */
export class Table implements Listener {
  readonly #io: CommandIo;
  readonly #isJson: boolean;
  readonly #hasColours: boolean;

  constructor(io: CommandIo, isJson: boolean) {
    this.#io = io;
    this.#isJson = isJson;
    // https://no-color.org: any value but an empty one.
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

  /** The last line: how many failed, and which comes first. */
  end({ checks }: Examined): void {
    this.#clearProgress();
    const count = (status: CheckStatus): number => checks.filter((check) => check.status === status).length;
    const first = checks.find(({ status }) => status === 'failed');
    const warnings = count('warning') === 1 ? '1 warning' : `${count('warning')} warnings`;
    const counts = `${count('ok')} ok, ${warnings}, ${count('failed')} failed, ${count('skipped')} skipped`;
    this.#io.out(`\n${counts}.${first ? ` Begin with ${first.name}.` : ''}\n`);
  }

  #clearProgress(): void {
    if (this.#io.errIsTerminal) this.#io.err('\r\x1b[K');
  }

  #paint(status: CheckStatus, text: string): string {
    return this.#hasColours ? `\x1b[${COLOURS[status]}m${text}\x1b[0m` : text;
  }
}

export function jsonOutput(examined: Examined): string {
  return `${JSON.stringify(examined, null, 2)}\n`;
}
