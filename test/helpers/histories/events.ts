import { setTimeout as sleep } from 'node:timers/promises';
import { type RecordedRequest } from 'nestjs-service/testing';
import { CLIENTS, type Replica, type ServiceName } from './clients.js';
import { CONNECTION_FAULTS, secretsOf, TOKEN_FAULTS } from './faults.js';
import { type PlannedEvent } from './plan.js';
import { type World } from './world.js';

/** For how many milliseconds a service presents the certificate of another server. */
const IMPOSTOR_MS = 30;

/** Makes an event happen. Resolves when it is over. */
export async function playEvent(world: World, event: PlannedEvent): Promise<void> {
  const { services, store } = world;
  switch (event.kind) {
    case 'revoke tokens':
      return services[event.service].revokeTokens();
    case 'rotate secret':
      return world.rotateSecret(event.service);
    case 'drop connections':
      return world.dropConnections(event.service);
    case 'impostor':
      return showImpostor(world, event.service);
    case 'token fault':
      return failTokenRequests(world, event);
    case 'connection fault':
      return void services[event.service].fail({ fault: CONNECTION_FAULTS[event.fault] });
    case 'rotate certificate':
      return rotateCertificate(world, event);
    case 'flush store':
      return store.flush();
    case 'mix store up':
      return store.mixUp();
    case 'restart':
      return world.restart(event.replica);
    default:
      store.mode = event.kind;
  }
}

function failTokenRequests(
  { services }: World,
  { service, fault, times }: PlannedEvent & { kind: 'token fault' },
): void {
  let sent = '';
  const when = (record: RecordedRequest): boolean => {
    sent = secretsOf(record);
    return true;
  };
  services[service].fail({ face: 'token', times, when, fault: TOKEN_FAULTS[fault](() => sent) });
}

async function showImpostor(world: World, service: ServiceName): Promise<void> {
  const simulator = world.services[service];
  // Each of these events ends all connections.
  await simulator.useServerCertificate({ face: 'oauth-base', foreign: true });
  world.drops.push(Date.now());
  await sleep(IMPOSTOR_MS);
  await simulator.useServerCertificate();
  world.drops.push(Date.now());
}

/** With `isTold`, the replicas read the new certificate at once. Otherwise they read it when a service refuses the old one. */
async function rotateCertificate(
  world: World,
  { client, isTold, isRevoked }: PlannedEvent & { kind: 'rotate certificate' },
): Promise<void> {
  const old = world.certificates[client].at(-1)!;
  await world.issueCertificate(client);
  // A replica may be shutting down.
  const tell = (replica: Replica) => replica[client].auth.reloadCertificate().catch(() => false);
  if (isTold) await Promise.all(world.replicas.map(tell));
  if (isRevoked) world.services[CLIENTS[client].service].revokeCertificate(old);
}
