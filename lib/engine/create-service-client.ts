import { type ServiceModuleOptions } from '../config/options.js';
import { ServiceConfigurationError } from '../errors/index.js';
import { SafeLogger } from '../telemetry/log.js';
import { type ServiceClient, systemIo } from './create-service.js';
import { openClient } from './open-client.js';
import { readConfiguration } from './read-configuration.js';

/**
 * A client without Nest, for a script, a worker or another framework; `ServiceModule` is the same client for Nest. It reads no
 * variable: `createServiceClient(serviceConfig())` gives it those of SERVICE_*, and its errors then name them. It logs by
 * Nest's Logger, and resolves after the `startupCheck`. `close()` it at the end.
 *
 * The options are the host's own code, and never a tenant's data: `{ file }` reads a file of this server, and an address
 * gets the credentials.
 * @throws ServiceConfigurationError if the options are not usable (ServiceCertificateError if all faults are about
 * certificates, ServiceStartupError for `startupCheck: 'fail'`)
 * @example
 * const { banks, close } = await createServiceClient({ urls: { sandboxUrl }, appToken });
 */
export async function createServiceClient(options: ServiceModuleOptions): Promise<ServiceClient> {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw ServiceConfigurationError.of('createServiceClient', 'takes an object of options.');
  }
  const log = new SafeLogger('ServiceClient');
  const heading = 'The options of createServiceClient() are not usable';
  const service = openClient(await readConfiguration({ given: options }, log), systemIo(log), heading);
  await service.start();
  const { start: _start, beginShutdown: _begin, ...client } = service;
  return client;
}
