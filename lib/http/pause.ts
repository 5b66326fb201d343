/** Waits, or rejects with the reason of whichever signal is aborted first. */
export function pause(ms: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  const given = signals.filter((signal) => signal !== undefined);
  return new Promise((resolve, reject) => {
    const done = (settle: () => void): void => {
      clearTimeout(timer);
      for (const signal of given) signal.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = (): void => {
      const aborted = given.find((signal) => signal.aborted);
      done(() => reject(aborted?.reason as Error));
    };
    const timer = setTimeout(() => done(resolve), ms);
    for (const signal of given) signal.addEventListener('abort', onAbort);
    if (given.some((signal) => signal.aborted)) onAbort();
  });
}

/** What the work says, or false where the signal is aborted first. */
export function unlessAborted(work: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(false);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
