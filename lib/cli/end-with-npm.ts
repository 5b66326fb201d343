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
