import { setTimeout as sleep } from 'node:timers/promises';

export interface SteadyLoad {
  /** Calls that ended so far, failed ones included. */
  readonly done: number;
  /** What failed calls rejected with. */
  readonly failures: readonly unknown[];
  /** Lets running calls end. */
  stop(): Promise<void>;
}

/** How much delay a worker makes up for. On a machine that is too slow, fewer calls are made. */
const CATCH_UP_MS = 1_000;

/** Makes calls at a steady rate, with at most `concurrency` in flight. A worker that is late catches up. */
export function steadyLoad(
  call: () => Promise<unknown>,
  { perSecond, concurrency }: { perSecond: number; concurrency: number },
): SteadyLoad {
  const failures: unknown[] = [];
  const everyMs = (1000 * concurrency) / perSecond;
  const begun = performance.now();
  let running = true;
  let done = 0;
  const workers = Array.from({ length: concurrency }, async (_, index) => {
    let next = begun + (index * everyMs) / concurrency;
    while (running) {
      const waitMs = next - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      if (!running) return;
      await call().catch((error: unknown) => failures.push(error));
      done += 1;
      next = Math.max(next + everyMs, performance.now() - CATCH_UP_MS);
    }
  });
  return {
    get done() {
      return done;
    },
    failures,
    async stop() {
      running = false;
      await Promise.all(workers);
    },
  };
}
