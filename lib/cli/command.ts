/** What a command may touch of its process; a test hands in its own. */
export interface CommandIo {
  /** The folder that the command is run in: an absolute path. */
  cwd: string;
  /** Not to be changed: what it names is the host's. */
  env: Readonly<Record<string, string | undefined>>;
  /** Standard output: results. */
  out(text: string | Uint8Array): void;
  /** Standard error: progress, and why a command cannot do what it was asked to. */
  err(text: string): void;
  outIsTerminal: boolean;
  errIsTerminal: boolean;
  /** Has the process go on when nobody reads its output any more; it ends then by default. */
  keepRunningUnread(): void;
  /** Resolves at the first SIGINT or SIGTERM from now on; a second one of its kind ends the process as usual. */
  endSignal(): Promise<void>;
}

/** What a file `lib/cli/<command>.ts` exports. */
export interface Command {
  /**
   * @param args what comes after the command's name
   * @returns the exit code: 0, 1 if it found something wrong, 2 if it was not used as it should be
   * @throws UsageError, and what `parseArgs` of node:util throws: both are reported with exit code 2
   */
  run(args: string[], io: CommandIo): Promise<number>;
}

/** The command was not used as it should be. The message says what to do instead. */
export class UsageError extends Error {}

/**
 * Git Bash on Windows takes an argument that begins with a slash for one of its own files, and gives Node its path in
 * Windows: `/banks/v1` becomes `C:/Program Files/Git/banks/v1`.
 *
 * @throws UsageError for such a path
 */
export function refuseRewritten(path: string): void {
  if (!/^[a-z]:[\\/]/i.test(path)) return;
  throw new UsageError(
    `'${path}' is a path of Windows. Git Bash makes one of an argument that begins with a slash: set MSYS_NO_PATHCONV=1, as in MSYS_NO_PATHCONV=1 npx nestjs-service call GET /banks/v1.`,
  );
}

/** Exit codes, as shells and schedulers read them. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
