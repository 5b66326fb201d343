import { type Authenticator } from '../../auth/authenticator.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type ServiceIo } from '../../exchange/io.js';
import { type Identity } from '../../tls/client-identity.js';
import { type CallsInFlight } from '../../exchange/calls-in-flight.js';

/** What one client of the service is made of. Each of its parts gets all of it. */
export interface ClientContext {
  options: ResolvedOptions;
  identity: Identity;
  io: ServiceIo;
  calls: CallsInFlight;
}

/** The source of calls' credentials. */
export type CallAuthenticator = Pick<Authenticator, 'use' | 'get' | 'replace' | 'areAlive'>;

/** What errors need to know of a client. */
export type ErrorClient = Pick<ClientContext, 'options'> & {
  identity: Pick<Identity, 'certificate' | 'hasChain' | 'keyType' | 'lastIssuer'>;
};
