/** How the module names itself in logs: `ServiceModule`, or `ServiceModule:ksa`. */
export function moduleLabel(name?: string): string {
  return name === undefined ? 'ServiceModule' : `ServiceModule:${name}`;
}
