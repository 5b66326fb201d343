import { ServiceRequestError } from '../errors/index.js';
import { type Call, type CallAuthenticator } from './call.js';
import { type CallConfig, type CallFactory } from './call-factory.js';

/** The property of an axios config that carries the call from the interceptor to the adapter. */
const CALL = Symbol('call');

type ConfigWithCall = CallConfig & { [CALL]?: Call };

const NOT_PREPARED =
  "came without this module's interceptor: use axiosRef itself, not axiosRef.create(), interceptors.request.clear() or eject()";

/**
 * Returns the interceptor, which attaches the app-token header, the bearer header or both to a call. They are not set in
 * `config.headers`, where code of the host application could read them or write them to a log, but in the {@link Call}, which the
 * adapter takes from the config.
 *
 * Axios runs the interceptor last, after those of the host application. It is synchronous and never waits for a token. If none is at
 * hand, the runner waits for one, within the time limit of the call. Throws ServiceRequestError for a call that leads outside the
 * service's own addresses, or that cannot be sent.
 */
export function authHeadersInterceptor(authenticator: CallAuthenticator, factory: CallFactory) {
  return (config: ConfigWithCall): ConfigWithCall => {
    const call = factory.prepare(config);
    // This may start a renewal of the token. Only a call that will be sent is to do that.
    const credentials = authenticator.getCached();
    if (credentials) call.setCredentials(credentials);
    config[CALL] = call;
    return config;
  };
}

/** Removes the Call from the config, because the host application gets the config back. Throws ServiceRequestError if there is none. */
export function takeCall(config: ConfigWithCall): Call {
  const call = config[CALL];
  if (!call) throw ServiceRequestError.ofMisuse('call', NOT_PREPARED);
  config[CALL] = undefined;
  return call;
}
