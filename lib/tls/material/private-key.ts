import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type ConfigurationFault, describeLocation } from '../../errors/index.js';
import { type PemContents } from './pem-contents.js';
import { type IdentitySnapshot } from './read-identity.js';

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
    contents.refuse(`is an encrypted key and there is no passphrase. Set ${where}, or decrypt the key.`);
    return {};
  }
  try {
    const opened = isEncrypted ? passphrase?.text?.reveal() : undefined;
    return { key: createPrivateKey({ key: block.pem, passphrase: opened }) };
  } catch {
    if (!isEncrypted || !passphrase) {
      contents.refuse('holds a private key that cannot be read: it is damaged or cut.');
      return {};
    }
    const { path } = contents.input;
    const message = `the passphrase does not open the private key${path === undefined ? '' : ` in ${path}`}: it is wrong, the key is damaged, or OpenSSL no longer reads its cipher (then encrypt it anew: openssl pkcs8 -topk8 -v2 aes-256-cbc -provider legacy -provider default).`;
    return { fault: { ...passphrase.location, message } };
  }
}
