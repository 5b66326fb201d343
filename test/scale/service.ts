import { ServiceSimulator, type FaultRule, type SimulatorModuleOptions } from 'nestjs-service/testing';
import { obey } from './worker.js';

/** A request that arrived at the token endpoint. */
export interface TokenRequest {
  scope: string;
  /** Wall clock, milliseconds. */
  at: number;
}

const TOKEN_DELAY_MS = 50;
const KEEP_ALIVE_MS = 120_000;

let simulator: ServiceSimulator;

const orders = {
  async start(tokenLifetime: number): Promise<SimulatorModuleOptions> {
    simulator = await ServiceSimulator.start({
      tokenLifetime,
      delayMs: { token: TOKEN_DELAY_MS },
      keepAliveTimeoutMs: KEEP_ALIVE_MS,
    });
    return simulator.moduleOptions({ authentication: 'oauth' });
  },
  /** All requests for tokens, from now on. */
  fail: (fault: FaultRule['fault']) => void simulator.fail({ face: 'token', fault, times: Infinity }),
  works: () => simulator.clearFaults(),
  rotateSecret: () => simulator.rotateClientSecret(),
  /** Those since the last time. */
  tokenRequests(): TokenRequest[] {
    const requests = simulator.tokenRequests.map(({ form, receivedAt }) => ({
      scope: form?.scope ?? '',
      at: receivedAt,
    }));
    simulator.clearRequests();
    return requests;
  },
};
export type ServiceOrders = typeof orders;

obey(orders);
