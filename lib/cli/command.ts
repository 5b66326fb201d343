/** The parts of the process that a command uses. Tests pass their own. */
export interface CommandIo {
  /** The working directory: an absolute path. */
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Writes results to standard output. */
  out(text: string | Uint8Array): void;
  /** Writes progress and errors to standard error. */
  err(text: string): void;
  outIsTerminal: boolean;
  errIsTerminal: boolean;
  /** Lets the process go on after the reader of its output has closed the pipe (EPIPE). By default the process ends. */
  keepRunningUnread(): void;
  /** Resolves at the first SIGINT or SIGTERM from now on. A second one ends the process as usual. */
  waitForEndSignal(): Promise<void>;
}

/** The exports of a file `lib/cli/<command>.ts`. */
export interface Command {
  /**
   * @param args the arguments after the command's name
   * @returns the exit code: 0; 1 if the command found something wrong; 2 for wrong usage
   * @throws UsageError, or an error of `parseArgs` of node:util. Both are reported with exit code 2.
   */
  run(args: string[], io: CommandIo): Promise<number>;
}

/** Wrong usage of a command. The message says what to do instead. */
export class UsageError extends Error {}

/**
 * Git Bash on Windows replaces an argument that begins with a slash by a path of Windows: `/banks/v1` arrives as
 * `C:/Program Files/Git/banks/v1`.
 *
 * @throws UsageError for such a path
 */
export function rejectWindowsPath(path: string): void {
  if (!/^[a-z]:[\\/]/i.test(path)) return;
  throw new UsageError(
    `'${path}' is a path of Windows. Git Bash rewrites arguments that begin with a slash. Turn that off with MSYS_NO_PATHCONV=1, for example: MSYS_NO_PATHCONV=1 npx nestjs-service call GET /banks/v1`,
  );
}

/** Escapes control and direction characters, because a terminal might obey them or show the text reversed. */
export function escapeControls(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, encodeURIComponent);
}

/** The folder in which the command `simulator` writes, unless `--dir` names another one. */
export const DEFAULT_DIR = 'service-simulator';

export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

const CHECK_EVERY_MS = 250;

/**
 * npm and npx send SIGTERM to the shell that runs the command, and many shells do not pass it on. The command would go on
 * without them. So it watches its parent process, and ends when the parent is gone.
 */
export function endWithNpm(): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM');
  }, CHECK_EVERY_MS).unref();
}
