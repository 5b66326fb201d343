import { BadRequestException } from '@nestjs/common';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { type PageChoices } from '../page/services-in-use.js';
import { type PlaygroundMode } from './modes.js';
import { type Simulators } from './simulators.js';

/** How long the simulator presents an expired certificate. */
const EXPIRED_MS = 4_000;
const BANKS = '/banks/v1';

const IMPOSSIBLE = {
  oauth: 'only with OAuth: calls of this mode have no token',
  mtls: 'only with mutual TLS: calls of this mode have no client certificate',
};

interface PageFault {
  title: string;
  /** The authentication that this fault requires. */
  needs?: keyof typeof IMPOSSIBLE;
  /** @param simulator the simulator of the current mode */
  inject(simulator: ServiceSimulator, simulators: Simulators): unknown;
}

const PAGE_FAULTS: Readonly<Record<string, PageFault>> = {
  unavailable: {
    title: '503, twice',
    inject: (simulator) => simulator.fail({ path: BANKS, times: 2, fault: { status: 503 } }),
  },
  timeout: {
    title: 'Time-out',
    inject: (simulator) => simulator.fail({ path: BANKS, fault: 'hang' }),
  },
  reset: {
    title: 'Reset',
    inject: (simulator) => simulator.fail({ path: BANKS, fault: 'reset' }),
  },
  revokedToken: {
    title: 'Revoked tokens',
    needs: 'oauth',
    inject: (simulator) => simulator.revokeTokens(),
  },
  rotatedSecret: {
    title: 'Rotated secret',
    needs: 'oauth',
    inject: (simulator, simulators) => {
      simulators.rotateSecret();
      simulator.revokeTokens();
    },
  },
  replacedCertificate: {
    title: 'Replaced client certificate',
    needs: 'mtls',
    inject: (_, simulators) => simulators.replaceCertificate(),
  },
  expiredCertificate: {
    title: `Expired server certificate (${EXPIRED_MS / 1000} s)`,
    inject: async (simulator) => {
      const [notBefore, notAfter] = [new Date(Date.now() - 172_800_000), new Date(Date.now() - 86_400_000)];
      await simulator.useServerCertificate({ notBefore, notAfter });
      // Fails if the application has stopped the simulator meanwhile.
      setTimeout(() => void simulator.useServerCertificate().catch(() => undefined), EXPIRED_MS).unref();
    },
  },
};

/** Lists the faults. One that cannot happen in this mode says why. */
export function faultChoices({ authentication }: PlaygroundMode): PageChoices['faults'] {
  return Object.entries(PAGE_FAULTS).map(([name, { title, needs }]) => ({
    name,
    title,
    ...(needs && needs !== authentication && { impossible: IMPOSSIBLE[needs] }),
  }));
}

export async function injectFault(
  name: string,
  simulator: ServiceSimulator,
  simulators: Simulators,
): Promise<void> {
  const fault = Object.hasOwn(PAGE_FAULTS, name) ? PAGE_FAULTS[name] : undefined;
  if (fault === undefined)
    throw new BadRequestException(
      `There is no fault '${name}'. Known: ${Object.keys(PAGE_FAULTS).join(', ')}.`,
    );
  await fault.inject(simulator, simulators);
}
