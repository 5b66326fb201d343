/** The part of @sentry/nestjs that docs/recipes.md uses. */
export declare function captureException(error: unknown): void;
/** What was reported. */
export declare const reported: unknown[];
