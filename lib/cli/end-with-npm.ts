const CHECK_EVERY_MS = 250;

/**
 * npm and npx pass SIGTERM on to their shell only. Not every shell becomes the command that it runs, and `exec` is no
 * word on Windows. So this process ends when that shell is gone.
 */
export function endWithNpm(): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM');
  }, CHECK_EVERY_MS).unref();
}
