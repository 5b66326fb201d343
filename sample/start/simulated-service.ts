import { ServiceSimulator } from 'nestjs-service/testing';

/**
 * Starts a simulator of the service and configures this process for it, as a .env would: mutual TLS as in production,
 * and OAuth for customer tokens. It ends with the process.
 */
export async function startSimulatedService(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  const variables = simulator.env({ environment: 'production', authentication: 'mtls', oauth: true });
  Object.assign(process.env, variables);
}
