const CHECK_EVERY_MS = 250;

/**
 * npm passes SIGTERM on to its shell only. Not every shell becomes the command that it runs, and `exec` is no word on
 * Windows. So the sample ends when that shell is gone.
 */
export function endWithNpm(): void {
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event === undefined) return;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGTERM');
  }, CHECK_EVERY_MS).unref();
}
