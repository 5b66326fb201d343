import { describeFault, ServiceCertificateError, ServiceConfigurationError } from '../errors/index.js';
import { type ServiceIo } from '../exchange/io.js';
import { createService, type Service } from './create-service.js';
import { type Configuration } from './read-configuration.js';

/**
 * Makes a client of what was read. It is not started.
 * @param heading the first line of the error, if there are faults
 * @throws ServiceConfigurationError with all faults; ServiceCertificateError, if all are about certificates
 */
export function openClient(read: Configuration, io: ServiceIo, heading: string): Service {
  const { options, identity, faults, isOnlyCertificates, certificate, warnings } = read;
  for (const warning of warnings) io.log.warn(describeFault(warning));
  if (options && identity && faults.length === 0) return createService(options, identity, io);
  if (isOnlyCertificates) throw new ServiceCertificateError(faults, { certificate });
  throw new ServiceConfigurationError(faults, heading);
}
