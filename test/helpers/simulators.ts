import { afterAll } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  CertificateAuthority,
  type IssuedCertificate,
  type AuthorityPems,
} from '../../lib/testing/certificate-authority.js';
import { ServiceSimulator } from '../../lib/testing/simulator.js';
import { type SimulatorOptions } from '../../lib/testing/simulator.options.js';

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/nestjs-service-tests/certificates.json');
const USED_FOR_MS = 24 * 3_600_000;

interface Certificates {
  authority: AuthorityPems;
  application: IssuedCertificate;
  server: IssuedCertificate;
}

/**
 * Starts a simulator with cached certificates, because creating them takes time. Tests of two services or of certificates
 * need different ones, and use `ServiceSimulator.start()`.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<ServiceSimulator> {
  const { certificates, host, serverNames } = options;
  if (certificates ?? host ?? serverNames) return ServiceSimulator.start(options);
  const { authority, ...kept } = (await readCertificates()) ?? (await makeCertificates());
  return ServiceSimulator.startWith(options, new CertificateAuthority(authority), kept);
}

async function readCertificates(): Promise<Certificates | undefined> {
  try {
    const { mtimeMs } = await stat(CACHE);
    if (Date.now() - mtimeMs > USED_FOR_MS) return undefined;
    return JSON.parse(await readFile(CACHE, 'utf8')) as Certificates;
  } catch {
    return undefined;
  }
}

/** Several Jest workers may do this at the same time. Each uses its own certificates, and the last ones are cached. */
async function makeCertificates(): Promise<Certificates> {
  const simulator = await ServiceSimulator.start();
  await simulator.stop();
  const { authority, application, server } = ServiceSimulator.certificatesOf(simulator);
  const made = { authority: authority.pems, application, server };
  const file = `${CACHE}.${randomUUID()}`;
  await mkdir(dirname(CACHE), { recursive: true });
  await writeFile(file, JSON.stringify(made), { mode: 0o600 });
  await rename(file, CACHE);
  return made;
}

/** Starts simulators for the tests of a `describe` block, and stops them after it. */
export function simulatorsOfBlock(
  startOne = startSimulator,
): (options?: SimulatorOptions) => Promise<ServiceSimulator> {
  const started: ServiceSimulator[] = [];
  afterAll(() => Promise.all(started.map((simulator) => simulator.stop())));
  return async (options) => {
    const simulator = await startOne(options);
    started.push(simulator);
    return simulator;
  };
}
