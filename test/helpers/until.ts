/** Waits until what is asked for is so; Jest's limit ends it if that never comes. */
export async function until(is: () => unknown): Promise<void> {
  while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 5));
}
