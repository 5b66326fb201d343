import { REREAD_MS, Rotating } from '../../lib/config/rotating.js';
import { type Identity } from '../../lib/tls/client-identity.js';
import { systemClock } from '../../lib/time/time.js';

/** The part of an identity that a test replaces: how another certificate is found after a refusal. */
type RotatingIdentity = Pick<Identity, 'rotation' | 'findOther'>;

/** An identity whose certificate nobody replaces, unless `findOther` says that another one was found. */
export function unchanging(findOther: Identity['findOther'] = async () => false): RotatingIdentity {
  const read = async () => undefined;
  const rotation = new Rotating<string | undefined>({ read, clock: systemClock, rereadMs: Infinity });
  return { rotation, findOther };
}

/**
 * An identity with a certificate from a tls function.
 * @param fingerprint that of the certificate in use
 * @param read calls the function. Resolves with the fingerprint of the certificate that is in use afterwards
 */
export function rotating(fingerprint: string, read: () => Promise<string>): RotatingIdentity {
  const rereadMs = REREAD_MS.function;
  const rotation = new Rotating<string | undefined>({ read, clock: systemClock, rereadMs });
  rotation.set(fingerprint);
  const findOther: Identity['findOther'] = async (refused, _, server) =>
    (await rotation.findOther(refused?.fingerprint256, { server })) !== undefined;
  return { rotation, findOther };
}
