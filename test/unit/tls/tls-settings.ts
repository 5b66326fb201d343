import { systemClock } from '../../../lib/time/time.js';
import { valueOf } from '../../../lib/config/option.js';
import { type TlsIdentityPems } from '../../../lib/config/tls.options.js';
import { variableOf } from '../../../lib/config/variables.js';
import { type TlsInputs, type TlsSettings } from '../../../lib/config/resolve-options.js';
import { Secret } from '../../../lib/config/secret.js';
import { checkIdentity } from '../../../lib/tls/material/check-identity.js';
import { readIdentity } from '../../../lib/tls/material/read-identity.js';
import { createContextMaker } from '../../../lib/tls/material/secure-contexts.js';

/** Beside a function, no option has a variable. */
export const locate = (option: string) => ({ option });

/** As the configuration hands them over. */
export function tlsSettings(pems: TlsIdentityPems, reload = true): TlsSettings {
  const source: TlsInputs = {};
  for (const key of ['certificate', 'privateKey', 'passphrase', 'chain'] as const) {
    const value = pems[key];
    if (value !== undefined) source[key] = typeof value === 'string' ? new Secret(value) : value;
  }
  const variable = (option: string) => variableOf(option, undefined, valueOf({ tls: pems }, option));
  return { source, reload, locate: (option) => ({ option, variable: variable(option) }) };
}

/** Reads and checks an identity, as a module does at its start. */
export async function loadIdentity(
  settings: TlsSettings,
  now = Date.now(),
): Promise<ReturnType<typeof checkIdentity>> {
  return checkIdentity(await readIdentity(settings, systemClock), now, createContextMaker(false));
}
