import { type TlsIdentityPems } from '../../../lib/config/tls.options.js';
import { type TlsInputs, type TlsSettings } from '../../../lib/config/resolved-options.js';
import { Secret } from '../../../lib/config/secret.js';

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
