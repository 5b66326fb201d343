/**
 * What stands in place of the names of `/accounts/v1/:id`, decoded; undefined for another path.
 *
 * @param path without query and without a slash at its end
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const segments = pattern.split('/');
  const actual = path.split('/');
  if (actual.length !== segments.length) return undefined;
  const params: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [index, segment] of segments.entries()) {
    const found = decode(actual[index]);
    if (!segment.startsWith(':')) {
      if (found !== segment) return undefined;
    } else {
      if (!found) return undefined;
      params[segment.slice(1)] = found;
    }
  }
  return params;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
