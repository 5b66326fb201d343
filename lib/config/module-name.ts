// In a file of its own, so that the simulator's command loads neither Nest nor the options.

/**
 * Why a module's name is not valid; undefined if its spelling is. Its variables may still collide with another
 * module's.
 */
export function spellingFault(name: string): string | undefined {
  if (/^[A-Za-z][\w-]*$/.test(name)) return undefined;
  return 'must begin with a letter and contain only letters, digits, - and _.';
}

/** The module's name in logs and errors: `ServiceModule`, or `ServiceModule:ksa`. */
export function moduleLabel(name?: string): string {
  return name === undefined ? 'ServiceModule' : `ServiceModule:${name}`;
}

/** `SERVICE_`, or `SERVICE_KSA_` for the module named `ksa`. */
export function variablePrefix(name?: string): string {
  return name === undefined ? 'SERVICE_' : `SERVICE_${name.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()}_`;
}

/** The namespace of ConfigModule that the module reads: `service`, or `service-ksa`. */
export function namespaceName(name?: string): string {
  return name === undefined ? 'service' : `service-${name}`;
}
