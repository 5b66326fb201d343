/** An error with a code, like Node's own. */
export function codedError(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
