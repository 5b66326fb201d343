// A copy of the work tree in a temporary directory, in which specs run while one file is broken.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

export class Copy {
  #top = mkdtempSync(join(tmpdir(), 'breaks-'));
  #tree = join(this.#top, 'tree');
  #temporary = join(this.#top, 'tmp');
  #globals;
  #child;

  /** @param isSoak whether specs run as in the soak run */
  constructor(root, files, isSoak) {
    this.#globals = JSON.stringify({ SOAK: isSoak });
    for (const file of files) cpSync(join(root, file), join(this.#tree, file));
    symlinkSync(join(root, 'node_modules'), join(this.#tree, 'node_modules'));
    mkdirSync(this.#temporary);
  }

  /** The same as `run`, while a file has another text. */
  async runBroken(file, text, specs, limitMs) {
    const path = join(this.#tree, file);
    const before = readFileSync(path);
    writeFileSync(path, text);
    try {
      return await this.run(specs, limitMs);
    } finally {
      writeFileSync(path, before);
    }
  }

  /** Runs specs in this order. Resolves with the first failure, or undefined, and the time that each spec took. */
  async run(specs, limitMs) {
    const start = performance.now();
    const timer = setTimeout(() => this.#end(), limitMs);
    this.#child = this.#startJest(specs);
    let output = '';
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.on('data', (data) => (output += data));
    const code = await new Promise((resolve) => this.#child.once('exit', resolve));
    clearTimeout(timer);
    this.#end();

    const lines = output.split('\n').filter((line) => line.startsWith('{"path"'));
    const results = lines.map((line) => JSON.parse(line));
    const failure = results.find(({ failed }) => failed)?.failed ?? (code === null ? 'does not end' : output);
    const times = results.map(({ path, ms }) => [relative(this.#tree, path), ms]);
    return {
      failure: code === 0 ? undefined : failure,
      times: new Map(times),
      ms: performance.now() - start,
    };
  }

  /** Ends what still runs, and removes the directory. */
  remove() {
    this.#end();
    rmSync(this.#top, { recursive: true, force: true, maxRetries: 5 });
  }

  #startJest(specs) {
    const plugin = join(this.#tree, 'test/breaks/first-failure.mjs');
    return spawn(
      process.execPath,
      [
        ...['--disable-warning=ExperimentalWarning', '--experimental-vm-modules'],
        join(this.#tree, 'node_modules/jest/bin/jest.js'),
        ...['--runInBand', '--bail', '--forceExit', `--globals=${this.#globals}`],
        ...[
          `--cacheDirectory=${join(this.#top, 'cache')}`,
          `--testSequencer=${plugin}`,
          `--reporters=${plugin}`,
        ],
        ...['--runTestsByPath', ...specs.map((spec) => join(this.#tree, spec))],
      ],
      {
        cwd: this.#tree,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, TMPDIR: this.#temporary },
      },
    );
  }

  /** Ends Jest, and the processes that its tests have left: they have its TMPDIR. Needs /proc to find those. */
  #end() {
    const left = process.platform === 'linux' ? readdirSync('/proc').filter((pid) => this.#isOurs(pid)) : [];
    for (const pid of [this.#child?.pid, ...left]) {
      try {
        if (pid) process.kill(Number(pid), 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
    this.#child = undefined;
  }

  #isOurs(pid) {
    try {
      return readFileSync(`/proc/${Number(pid)}/environ`, 'utf8').includes(`TMPDIR=${this.#temporary}\0`);
    } catch {
      return false;
    }
  }
}
