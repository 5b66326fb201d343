import { BadRequestException } from '@nestjs/common';
import { type ServiceSimulator } from 'nestjs-service/testing';

/** Milliseconds that the simulator presents an expired certificate. */
const EXPIRED_MS = 4_000;
const BANKS = '/banks/v1';

interface PageFault {
  title: string;
  inject(simulator: ServiceSimulator, replaceCertificate: () => Promise<void>): unknown;
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
    inject: (simulator) => simulator.revokeTokens(),
  },
  rotatedSecret: {
    title: 'Rotated secret',
    inject: (simulator) => {
      simulator.rotateClientSecret();
      simulator.revokeTokens();
    },
  },
  replacedCertificate: {
    title: 'Replaced client certificate',
    inject: (_, replaceCertificate) => replaceCertificate(),
  },
  expiredCertificate: {
    title: `Expired server certificate (${EXPIRED_MS / 1000} s)`,
    inject: async (simulator) => {
      const [notBefore, notAfter] = [new Date(Date.now() - 172_800_000), new Date(Date.now() - 86_400_000)];
      await simulator.useServerCertificate({ notBefore, notAfter });
      // A stopped simulator has no servers to change.
      setTimeout(() => void simulator.useServerCertificate().catch(() => undefined), EXPIRED_MS).unref();
    },
  },
};

export const FAULT_CHOICES = Object.entries(PAGE_FAULTS).map(([name, { title }]) => ({ name, title }));

export async function injectFault(
  name: string,
  simulator: ServiceSimulator,
  replaceCertificate: () => Promise<void>,
): Promise<void> {
  const fault = Object.hasOwn(PAGE_FAULTS, name) ? PAGE_FAULTS[name] : undefined;
  if (fault === undefined) throw new BadRequestException(`There is no fault ${name}.`);
  await fault.inject(simulator, replaceCertificate);
}
