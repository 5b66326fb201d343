import { systemClock } from '../../../lib/time/clock.js';
import { type TlsIdentityPems } from '../../../lib/config/tls.options.js';
import { type TlsInputs, type TlsSettings } from '../../../lib/config/resolved-options.js';
import { Secret } from '../../../lib/config/secret.js';
import { checkIdentity } from '../../../lib/tls/material/check-identity.js';
import { readIdentity } from '../../../lib/tls/material/read-identity.js';
import { SecureContexts } from '../../../lib/tls/material/secure-contexts.js';

const VARIABLES = {
  certificate: 'SERVICE_TLS_CERTIFICATE',
  privateKey: 'SERVICE_TLS_PRIVATE_KEY',
  passphrase: 'SERVICE_TLS_PASSPHRASE',
  chain: 'SERVICE_TLS_CHAIN',
} as const;

/** As the configuration hands them over. */
export function tlsSettings(pems: TlsIdentityPems, reload = true): TlsSettings {
  const source: TlsInputs = {};
  for (const key of ['certificate', 'privateKey', 'passphrase', 'chain'] as const) {
    const value = pems[key];
    if (value === undefined) continue;
    const file = typeof value !== 'string';
    source[key] = {
      option: `tls.${key}`,
      variable: file ? `${VARIABLES[key]}_FILE` : VARIABLES[key],
      value: file ? value : new Secret(value),
    };
  }
  return { source, reload };
}

/** Reads and checks an identity, as a module does at its start. */
export async function loadIdentity(
  settings: TlsSettings,
  now = Date.now(),
): Promise<ReturnType<typeof checkIdentity>> {
  return checkIdentity(await readIdentity(settings, systemClock), now, new SecureContexts(false));
}
