/**
 * Options for Node, which looks for those that are missing in Object.prototype too: what somebody put there (`auth`,
 * `setHost`, `path`) is undefined in the result. An object without a prototype would not do: Node 20 copies it into one
 * that has a prototype. Throws for `encoding`, which every socket of Node takes from there: text in the place of bytes
 * would end the process.
 */
export function ownOptions<T extends object>(options: T): T {
  const foreign = Object.create(null) as Record<string, undefined>;
  for (const name in Object.prototype) foreign[name] = undefined;
  if ('encoding' in foreign) {
    throw Object.assign(new Error('Object.prototype has an encoding'), { code: 'ERR_OBJECT_PROTOTYPE' });
  }
  return { ...foreign, ...options };
}
