import { systemClock } from '../../time/clock.js';
import { within } from '../../time/timers.js';
import { failed, skipped, type Check, type Finding } from './check.js';

/** One check that takes time. */
export interface Step {
  name: string;
  /** Steps without whose success this one would show nothing of its own. Those that are not there count as passed. */
  needs: readonly string[];
  /** @param signal ends it; @param timeoutMs that it has */
  run: (timeoutMs: number, signal: AbortSignal) => Promise<Finding>;
}

/** Milliseconds for each step, and for all of them. */
export interface StepLimits {
  stepMs: number;
  totalMs: number;
}

/**
 * Runs the steps in their order. One that needs a failed one is skipped, and says which it follows from: of several
 * failures that have one cause, only the cause is reported as failed.
 */
export async function* runSteps(
  steps: readonly Step[],
  { stepMs, totalMs }: StepLimits,
  onBegin: (name: string) => void,
): AsyncGenerator<Check> {
  const endsAt = performance.now() + totalMs;
  /** By a step that did not pass, the one that is the cause. */
  const causes = new Map<string, string>();
  for (const { name, needs, run } of steps) {
    const cause = needs.map((need) => causes.get(need)).find((found) => found !== undefined);
    const timeoutMs = Math.min(stepMs, endsAt - performance.now());
    if (cause !== undefined || timeoutMs <= 0) {
      causes.set(name, cause ?? name);
      yield { name, ...skipped(cause ? `Follows from ${cause}.` : 'There was no time left for it.') };
      continue;
    }
    onBegin(name);
    // A step watches its time itself, and knows what it means when that is over; this is for what it cannot end.
    const limit = { clock: systemClock, timeoutMs: timeoutMs + 500, expired: () => new Error('expired') };
    const finding = await within(limit, (signal) => run(timeoutMs, signal)).catch(({ code, name }) =>
      failed(
        `It did not come to an end (${code ?? name}).`,
        'Run it again. If that changes nothing, report it with this output.',
      ),
    );
    if (finding.status === 'failed') causes.set(name, name);
    yield { name, ...finding };
  }
}
