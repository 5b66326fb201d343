import { type Authenticator } from '../../auth/authenticator.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type ServiceIo } from '../../exchange/io.js';
import { type Identity } from '../../tls/client-identity.js';
import { type CallsInFlight } from '../../exchange/calls-in-flight.js';

/** The shared parts of one client: its options, its TLS identity, its clock and network, and its count of calls in flight. */
export interface ClientContext {
  options: ResolvedOptions;
  identity: Identity;
  io: ServiceIo;
  calls: CallsInFlight;
}

/** The parts of the authenticator that calls use. */
export type CallAuthenticator = Pick<Authenticator, 'getCached' | 'get' | 'replace' | 'areStillValid'>;

/** The parts of a client that the text of an error depends on. */
export type ErrorClient = Pick<ClientContext, 'options' | 'identity'>;
