import { type Clock } from '../../time/clock.js';
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

export interface StepLimits {
  clock: Clock;
  /** Milliseconds for each step. */
  stepMs: number;
  /** Milliseconds for all of them. */
  totalMs: number;
  /** Called before a step that takes time. */
  onBegin?: (name: string) => void;
}

/**
 * Runs the steps in their order. One that needs a failed one is skipped, and says which it follows from: of several
 * failures that have one cause, only the cause is reported as failed.
 */
export async function* runSteps(steps: readonly Step[], limits: StepLimits): AsyncGenerator<Check> {
  const { clock, stepMs, totalMs, onBegin } = limits;
  const endsAt = clock.monotonic() + totalMs;
  /** By a step that did not pass, the one that is the cause. */
  const causes = new Map<string, string>();
  for (const { name, needs, run } of steps) {
    const cause = needs.map((need) => causes.get(need)).find((found) => found !== undefined);
    const timeoutMs = Math.min(stepMs, endsAt - clock.monotonic());
    if (cause !== undefined || timeoutMs <= 0) {
      causes.set(name, cause ?? name);
      yield { name, ...skipped(cause ? `Follows from ${cause}.` : 'There was no time left for it.') };
      continue;
    }
    onBegin?.(name);
    const finding = await bounded(run, timeoutMs, clock);
    if (finding.status === 'failed') causes.set(name, name);
    yield { name, ...finding };
  }
}

/** A step watches its time itself, and knows what it means when that is over; this is for what it cannot end. */
async function bounded(run: Step['run'], timeoutMs: number, clock: Clock): Promise<Finding> {
  const expired = () => new Error('expired');
  const limit = { clock, timeoutMs: timeoutMs + 500, expired };
  return within(limit, (signal) => run(timeoutMs, signal)).catch((error: unknown) => {
    const { code, name } = error as { code?: unknown; name?: unknown };
    const reason = typeof code === 'string' ? code : String(name);
    return failed(
      `It did not come to an end (${reason}).`,
      'Run it again. If that changes nothing, report it with this output.',
    );
  });
}
