import { ServiceSimulator } from 'nestjs-service/testing';

/**
 * Starts the service on loopback and configures this process for it, as a .env would: calls by mutual TLS as in
 * production, customer tokens by OAuth. It ends with the process.
 */
export async function startSimulatedService(): Promise<void> {
  const simulator = await ServiceSimulator.start();
  const variables = simulator.env({ environment: 'production', authentication: 'mtls', oauth: true });
  Object.assign(process.env, variables);
}
