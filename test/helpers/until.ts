const LIMIT_MS = 20_000;

/** Waits for what must come; fails the test if it does not come within 20 seconds. */
export async function until(is: () => unknown): Promise<void> {
  const end = performance.now() + LIMIT_MS;
  while (!(await is())) {
    if (performance.now() > end) throw new Error(`It did not come to that within ${LIMIT_MS / 1000} s`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
