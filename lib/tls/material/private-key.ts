import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type ConfigurationFault, describeLocation } from '../../errors/index.js';
import { type PemContents } from './pem-contents.js';
import { type IdentitySnapshot } from './read-identity.js';

const UNKNOWN_ALGORITHM = `holds a key of an algorithm that this Node does not know (OpenSSL ${process.versions.openssl}), for example ML-DSA before OpenSSL 3.5. Use a newer Node, or a certificate for an RSA or ECDSA key.`;

/** The private key; opens an encrypted one with the passphrase. A fault of its own is noted there, one of the passphrase returned. */
export function readPrivateKey(
  contents: PemContents,
  { passphrase, locate }: IdentitySnapshot,
): { key?: KeyObject; fault?: ConfigurationFault } {
  const [block] = contents.keys;
  if (contents.fault || passphrase?.fault) return { fault: passphrase?.fault };
  const isEncrypted = block.label.startsWith('ENCRYPTED') || block.pem.includes('Proc-Type: 4,ENCRYPTED');
  if (isEncrypted && !passphrase) {
    const where = describeLocation(locate('tls.passphrase'));
    contents.addFault(`is an encrypted key and there is no passphrase. Set ${where}, or decrypt the key.`);
    return {};
  }
  try {
    const opened = isEncrypted ? passphrase?.text?.reveal() : undefined;
    return { key: createPrivateKey({ key: block.pem, passphrase: opened }) };
  } catch (error) {
    if (isUnknownAlgorithm(error)) {
      contents.addFault(UNKNOWN_ALGORITHM);
      return {};
    }
    if (!isEncrypted || !passphrase) {
      contents.addFault('holds a private key that cannot be read: it is damaged or cut.');
      return {};
    }
    const { path } = contents.input;
    const message = `the passphrase does not open the private key${path === undefined ? '' : ` in ${path}`}: it is wrong (in .env, a value with # needs quotes, and with expandVariables of ConfigModule a $ needs a backslash before it), the key is damaged, or OpenSSL no longer reads its cipher (then encrypt it anew: openssl pkcs8 -topk8 -v2 aes-256-cbc -provider legacy -provider default).`;
    return { fault: { ...passphrase.location, message } };
  }
}

/** The key could be opened, but not used. The error's own code is the same for a damaged key. */
function isUnknownAlgorithm(error: unknown): boolean {
  const { opensslErrorStack: reasons = [] } = error as { opensslErrorStack?: string[] };
  return reasons.some((reason) => reason.endsWith(':unsupported private key algorithm'));
}
