/** Set by test/soak/jest.config.js: the soak run has all of some specs of which `npm test` has a part. */
const IS_SOAK = (globalThis as { SOAK?: boolean }).SOAK === true;

/** Tests that only the soak run has. */
export function inSoak(define: () => void): void {
  if (IS_SOAK) define();
}

/** `it`, or one like it, in the soak run; else it defines nothing. */
export function onlyInSoak<T extends (...args: never[]) => unknown>(test: T): T {
  const nothing = (): void => undefined;
  return IS_SOAK ? test : (Object.assign(nothing, { each: () => nothing }) as unknown as T);
}

/** The whole table in the soak run, else one row of so many. */
export function partOf<T>(rows: readonly T[], every: number): T[] {
  return IS_SOAK ? [...rows] : rows.filter((_, index) => index % every === 0);
}

/** The first in the soak run, else the second. */
export function soakOr<T>(long: T, short: T): T {
  return IS_SOAK ? long : short;
}

/** So many in the soak run, else a tenth of them. */
export function scaled(count: number): number {
  return IS_SOAK ? count : count / 10;
}

/** So many random draws in the soak run, else a tenth of them. */
export function draws(count: number): { numRuns: number } {
  return { numRuns: scaled(count) };
}
