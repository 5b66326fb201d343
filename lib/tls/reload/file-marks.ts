import { stat } from 'node:fs/promises';

/**
 * What of files changes with their content: where they are, their size and both their times, links followed. To look at it
 * costs a tenth of a reading.
 */
export class FileMarks {
  readonly #paths: readonly string[];
  #marks?: string;
  #isCertain = false;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /**
   * True where the files are as they were the last two times: a write right after the first may leave all of it the same.
   * Never where there is no file.
   */
  async areUnchanged(): Promise<boolean> {
    if (this.#paths.length === 0) return false;
    const marks = await Promise.all(this.#paths.map(markOf)).then(
      (found) => found.join(),
      // What cannot be looked at is read.
      () => undefined,
    );
    const isSame = marks !== undefined && marks === this.#marks;
    const isUnchanged = isSame && this.#isCertain;
    this.#marks = marks;
    this.#isCertain = isSame;
    return isUnchanged;
  }
}

async function markOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}
