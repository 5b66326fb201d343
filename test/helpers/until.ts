import { setImmediate, setTimeout } from 'node:timers/promises';

const LIMIT_MS = 20_000;
const MAX_PAUSE_MS = 10;

/**
 * Waits until the condition is true. Fails the test after 20 seconds. The condition is checked in each turn of the event loop
 * at first, and less often if it takes longer: other tests need the CPU.
 */
export async function until(is: () => unknown): Promise<void> {
  const start = performance.now();
  while (!(await is())) {
    const elapsedMs = performance.now() - start;
    if (elapsedMs > LIMIT_MS)
      throw new Error(`The condition did not become true within ${LIMIT_MS / 1000} s: ${String(is)}`);
    await (elapsedMs < MAX_PAUSE_MS ? setImmediate() : setTimeout(Math.min(MAX_PAUSE_MS, elapsedMs / 20)));
  }
}
