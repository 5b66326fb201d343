/** The part of BullMQ that docs/recipes.md uses: a job is not run again after this error. */
export declare class UnrecoverableError extends Error {}
export interface Job<T> {
  id?: string;
  data: T;
}
