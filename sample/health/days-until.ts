const DAY_MS = 86_400_000;

/** Whole days left; negative once the date has passed. */
export function daysUntil(date: Date): number {
  return Math.floor((date.getTime() - Date.now()) / DAY_MS);
}
