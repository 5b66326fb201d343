/** The message where the application cannot start: what is wrong and how to correct it. A stack only for a bug. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // By its name, as the package may not be loaded yet.
  const isServiceError = /^Service\w*Error$/.test(error.name);
  if (isServiceError || error instanceof RangeError) return error.message;
  if (hasCode(error, 'EADDRINUSE'))
    return `Port ${error.port} is taken. Set the variable PORT to a free one, in the environment or in .env.`;
  if (hasCode(error, 'EACCES'))
    return `Port ${error.port} may not be used by this user. Set PORT to one from 1024 on.`;
  return error.stack ?? error.message;
}

function hasCode(error: Error, code: string): error is Error & { port: number } {
  return 'code' in error && error.code === code && 'port' in error;
}
