/** Says why the application cannot start, and what to do. Shows a stack only for a bug. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Not with instanceof, because the package may not be loaded yet.
  const isServiceError = /^Service\w*Error$/.test(error.name);
  if (isServiceError || error instanceof RangeError) return error.message;
  if (hasCode(error, 'EADDRINUSE'))
    return `Port ${error.port} is in use. Is the sample running already? Otherwise set PORT to a free port, in the environment or in .env.`;
  if (hasCode(error, 'EACCES'))
    return `This user may not listen on port ${error.port}. Set PORT to 1024 or above.`;
  return error.stack ?? error.message;
}

function hasCode(error: Error, code: string): error is Error & { port: number } {
  return 'code' in error && error.code === code && 'port' in error;
}
