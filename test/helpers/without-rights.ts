/** A user without rights, on all Unix systems. */
const NOBODY = 65_534;

/**
 * Runs a function as a user who is not root, because root may read every file. A test that does not run as root stays the user that
 * it is.
 */
export async function withoutRights<T>(run: (user: number) => Promise<T>): Promise<T> {
  const user = process.geteuid?.();
  if (user !== 0) return run(user ?? 0);
  process.seteuid?.(NOBODY);
  try {
    return await run(NOBODY);
  } finally {
    process.seteuid?.(user);
  }
}
