/** Blocks the process: no timer fires, and nothing is read, for so many milliseconds. */
export function standStill(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
