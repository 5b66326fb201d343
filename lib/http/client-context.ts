import { type Authenticator } from '../auth/authenticator.js';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { type ServiceIo } from '../exchange/io.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type Identity } from '../tls/client-identity.js';
import { type CallsInFlight } from './calls-in-flight.js';

/** What one client of the service is made of: passed whole to its parts. */
export interface ClientContext {
  options: ResolvedOptions;
  identity: Identity;
  io: ServiceIo;
  telemetry: Telemetry;
  calls: CallsInFlight;
}

/** Where calls get their credentials. */
export type CallAuthenticator = Pick<Authenticator, 'use' | 'get' | 'renew'>;

/** What errors tell of a client. */
export type ErrorClient = Pick<ClientContext, 'options'> & {
  identity: Pick<Identity, 'certificate' | 'hasChain'>;
};
