import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type ConfigurationFault } from '../../errors/index.js';
import { fault, nameOf, pathOf, type ReadInput } from './read-input.js';
import { type PemBlock } from './pem-text.js';

export type PrivateKeyResult =
  { key: KeyObject; fault?: undefined } | { key?: undefined; fault: ConfigurationFault };

/** Reads the private key; an encrypted one with the passphrase. Never throws. */
export function readPrivateKey(
  input: ReadInput,
  block: PemBlock,
  passphrase: ReadInput | undefined,
): PrivateKeyResult {
  const encrypted = block.label.startsWith('ENCRYPTED') || block.pem.includes('Proc-Type: 4,ENCRYPTED');
  const secret = encrypted ? passphraseOf(passphrase) : undefined;
  if (encrypted && secret === undefined) return { fault: fault(input, withoutPassphrase(input)) };
  try {
    return { key: createPrivateKey({ key: block.pem, passphrase: secret }) };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    return {
      fault: encrypted
        ? encryptedFault(input, block, passphrase ?? input, code)
        : fault(input, damaged(input)),
    };
  }
}

function passphraseOf(passphrase: ReadInput | undefined): string | undefined {
  const text = passphrase?.content?.bytes().toString('utf8');
  if (text === undefined) return undefined;
  // `echo` and editors put one newline at the end of a file.
  return passphrase?.path === undefined ? text : text.replace(/\r?\n$/, '');
}

function withoutPassphrase(input: ReadInput): string {
  const variable = input.variable?.replace(/PRIVATE_KEY(_FILE)?$/, 'PASSPHRASE');
  const where = variable && variable !== input.variable ? `tls.passphrase (${variable})` : 'tls.passphrase';
  return `${nameOf(input)} is an encrypted key and there is no passphrase. Set ${where}, or decrypt the key: openssl pkey -in ${pathOf(input, '<file>')} -out private-key.pem`;
}

// 2.16.840.1.101.3.4.1, AES, and 1.2.840.113549.3.7, DES-EDE3-CBC: DER of the object identifiers.
const CURRENT_CIPHERS = ['060960864801650304', '06082a864886f70d0307'];

/** About once in 200 times a wrong passphrase decrypts to nonsense. OpenSSL then reports the same as for an old cipher. */
function isCurrentCipher({ pem }: PemBlock): boolean {
  if (/^DEK-Info: (AES|DES-EDE3)/m.test(pem)) return true;
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64').toString('hex');
  return CURRENT_CIPHERS.some((identifier) => der.includes(identifier));
}

function encryptedFault(
  input: ReadInput,
  block: PemBlock,
  passphrase: ReadInput,
  code: string,
): ConfigurationFault {
  if (/UNSUPPORTED/.test(code) && !isCurrentCipher(block)) {
    const command = `openssl pkcs8 -topk8 -v2 aes-256-cbc -provider legacy -provider default -in ${pathOf(input, '<file>')} -out private-key.pem`;
    return fault(
      input,
      `${nameOf(input)} is encrypted with a cipher that this OpenSSL no longer reads, or is damaged. Encrypt it anew: ${command}`,
    );
  }
  return fault(
    passphrase,
    `the passphrase does not open the private key${input.path ? ` in ${input.path}` : ''}: it is wrong, or the key is damaged.`,
  );
}

function damaged(input: ReadInput): string {
  return `${nameOf(input)} holds a private key that cannot be read: it is damaged or cut. Check it: openssl pkey -in ${pathOf(input, '<file>')} -noout`;
}
