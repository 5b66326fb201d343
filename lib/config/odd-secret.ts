/** What a client secret hardly has, for "the secret ..."; undefined where there is nothing. */
export function oddityOf(secret: string): string | undefined {
  if (hasControlsAtEnd(secret)) return 'begins or ends with a line break or a tab';
  if (secret !== secret.trim()) return 'begins or ends with a blank';
  return /^(["']).*\1$/s.test(secret) ? 'is in quotes' : undefined;
}

/** CR, LF or TAB before or after all else: of an editor or a copy, never of the secret. */
export function hasControlsAtEnd(secret: string): boolean {
  const [before, after] = [
    secret.slice(0, -secret.trimStart().length),
    secret.slice(secret.trimEnd().length),
  ];
  return /[\r\n\t]/.test(before + after);
}
