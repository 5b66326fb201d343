/** Set by test/soak/jest.config.js. The soak run contains the long versions of some tests of `npm test`. */
const IS_SOAK = (globalThis as { SOAK?: boolean }).SOAK === true;

/** Defines tests in the soak run only. */
export function inSoak(define: () => void): void {
  if (IS_SOAK) define();
}

/** Returns `it` (or a similar function) in the soak run, and otherwise a function that defines nothing. */
export function onlyInSoak<T extends (...args: never[]) => unknown>(test: T): T {
  const nothing = (): void => undefined;
  return IS_SOAK ? test : (Object.assign(nothing, { each: () => nothing }) as unknown as T);
}

/** Returns the whole table in the soak run, and otherwise one row out of every `every`. */
export function partOf<T>(rows: readonly T[], every: number): T[] {
  return IS_SOAK ? [...rows] : rows.filter((_, index) => index % every === 0);
}

/** Returns `long` in the soak run, and otherwise `short`. */
export function soakOr<T>(long: T, short: T): T {
  return IS_SOAK ? long : short;
}

/** Returns the count in the soak run, and otherwise a tenth of it. */
export function scaled(count: number): number {
  return IS_SOAK ? count : count / 10;
}

/** The number of random examples for fast-check: all of them in the soak run, otherwise a tenth. */
export function draws(count: number): { numRuns: number } {
  return { numRuns: scaled(count) };
}
