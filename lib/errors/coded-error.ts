/** An error with a code, like Node's own. */
export function codedError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Whether an import failed because its package, or one that this one needs, is not installed. */
export function isNotInstalled(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}
