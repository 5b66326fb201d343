import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Whether the terminal is this process's to read. One that a shell runs with `&` would be stopped as soon as a key is
 * pressed.
 */
export function isInForeground(): boolean {
  if (process.platform === 'win32') return true;
  try {
    if (process.platform !== 'linux') {
      return execFileSync('ps', ['-o', 'stat=', '-p', String(process.pid)], { encoding: 'utf8' }).includes(
        '+',
      );
    }
    // After the name, which may hold anything: state, parent, group, session, terminal, its group (proc(5)).
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[2] === fields[5];
  } catch {
    return false;
  }
}
