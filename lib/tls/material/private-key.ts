import { createPrivateKey, type KeyObject } from 'node:crypto';
import { describeLocation } from '../../errors/index.js';
import { type PemContents } from './pem-contents.js';
import { type PemBlock } from './pem-text.js';
import { type IdentitySnapshot, type ReadInput } from './read-identity.js';

/** The private key; opens an encrypted one with the passphrase, whose own fault the caller reports. Notes faults. */
export function readPrivateKey(
  contents: PemContents,
  passphrase: ReadInput | undefined,
  locate: IdentitySnapshot['locate'],
): KeyObject | undefined {
  const { input, keys, faults } = contents;
  if (keys.length !== 1 || passphrase?.fault) return undefined;
  const [block] = keys;
  const isEncrypted = block.label.startsWith('ENCRYPTED') || block.pem.includes('Proc-Type: 4,ENCRYPTED');
  if (isEncrypted && !passphrase) {
    contents.refuse(
      `is an encrypted key and there is no passphrase. Set ${describeLocation(locate('tls.passphrase'))}, or decrypt the key: openssl pkey -in ${input.argument} -out private-key.pem`,
    );
    return undefined;
  }
  try {
    return createPrivateKey({ key: block.pem, passphrase: isEncrypted ? textOf(passphrase) : undefined });
  } catch (error) {
    if (!isEncrypted || !passphrase) {
      contents.refuse(
        `holds a private key that cannot be read: it is damaged or cut. Check it: openssl pkey -in ${input.argument} -noout`,
      );
    } else if (isOldCipher(block, error)) {
      contents.refuse(
        `is encrypted with a cipher that this OpenSSL no longer reads, or is damaged. Encrypt it anew: openssl pkcs8 -topk8 -v2 aes-256-cbc -provider legacy -provider default -in ${input.argument} -out private-key.pem`,
      );
    } else {
      const message = `the passphrase does not open the private key${input.inFile}: it is wrong, or the key is damaged.`;
      faults.push(passphrase.faultOf(message));
    }
    return undefined;
  }
}

function textOf(passphrase: ReadInput | undefined): string | undefined {
  const text = passphrase?.bytes?.toString('utf8');
  // `echo` and editors put one newline at the end of a file.
  return passphrase?.path === undefined ? text : text?.replace(/\r?\n$/, '');
}

// 2.16.840.1.101.3.4.1, AES, and 1.2.840.113549.3.7, DES-EDE3-CBC: DER of the object identifiers.
const CURRENT_CIPHERS = ['060960864801650304', '06082a864886f70d0307'];

/**
 * About once in 200 times a wrong passphrase decrypts to nonsense. OpenSSL then reports the same as for an old cipher,
 * so the cipher itself is looked at too.
 */
function isOldCipher({ pem }: PemBlock, error: unknown): boolean {
  if (!/UNSUPPORTED/.test((error as NodeJS.ErrnoException).code ?? '')) return false;
  if (/^DEK-Info: (AES|DES-EDE3)/m.test(pem)) return false;
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64').toString('hex');
  return !CURRENT_CIPHERS.some((identifier) => der.includes(identifier));
}
