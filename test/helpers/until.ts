const LIMIT_MS = 20_000;

/** Waits until the condition is true. Fails the test after 20 seconds. */
export async function until(is: () => unknown): Promise<void> {
  const end = performance.now() + LIMIT_MS;
  while (!(await is())) {
    if (performance.now() > end)
      throw new Error(`The condition did not become true within ${LIMIT_MS / 1000} s: ${String(is)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
