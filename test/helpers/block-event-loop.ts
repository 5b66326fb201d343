/** Blocks the event loop: no timer fires and no socket is read until the time is over. */
export function blockEventLoop(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
