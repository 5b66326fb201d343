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

/** Exit codes, as shells and schedulers read them. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
