import { systemClock, within } from '../../time/time.js';
import { failed, skipped, type Check, type Finding } from './check.js';

/** A check that connects. */
export interface Step {
  name: string;
  /** If one of these steps failed, this one would only repeat that failure, so it is skipped. Unknown names are ignored. */
  needs: readonly string[];
  run: (timeoutMs: number, signal: AbortSignal) => Promise<Finding>;
}

/** Time limits of each step, and of all steps together. */
export interface StepLimits {
  stepMs: number;
  totalMs: number;
}

/**
 * Runs the steps in order. A step that needs a failed step is skipped and names it, so that one fault is reported as failed
 * once and not by every check after it.
 */
export async function* runSteps(
  steps: readonly Step[],
  { stepMs, totalMs }: StepLimits,
  onBegin: (name: string) => void,
): AsyncGenerator<Check> {
  const endsAt = performance.now() + totalMs;
  /** For each step that did not pass: the step that is the cause. */
  const causes = new Map<string, string>();
  for (const { name, needs, run } of steps) {
    const cause = needs.map((need) => causes.get(need)).find((found) => found !== undefined);
    const timeoutMs = Math.min(stepMs, endsAt - performance.now());
    if (cause !== undefined || timeoutMs <= 0) {
      causes.set(name, cause ?? name);
      yield {
        name,
        ...skipped(cause ? `Not checked, because ${cause} failed.` : 'Not checked, because the time was up.'),
      };
      continue;
    }
    onBegin(name);
    // A step normally ends by itself when its time is over, and says what that means. This limit is for a step that hangs.
    const limit = { clock: systemClock, timeoutMs: timeoutMs + 500, expired: () => new Error('expired') };
    const finding = await within(limit, (signal) => run(timeoutMs, signal)).catch(({ code, name }) =>
      failed(
        `The check did not finish (${code ?? name}).`,
        'Run the doctor again. If the check fails again, report it with this output.',
      ),
    );
    if (finding.status === 'failed') causes.set(name, name);
    yield { name, ...finding };
  }
}
