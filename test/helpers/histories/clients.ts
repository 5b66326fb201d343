import { type LoggerService } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  LinkSdkService,
  ServiceAuthService,
  ServiceHttpService,
  ServiceModule,
  type ServiceModuleOptions,
} from 'nestjs-service';
import { type SimulatorModeOptions, type SimulatorOptions } from 'nestjs-service/testing';

/** The simulated services. Each has its own application, secrets and tokens. */
export const SERVICES = {
  acme: { appTokenHeader: 'service-app-token' },
  bolt: { appTokenHeader: 'x-bolt-token', certificateBoundTokens: true },
} satisfies Record<string, SimulatorOptions & { appTokenHeader: string }>;
export type ServiceName = keyof typeof SERVICES;

interface Client {
  service: ServiceName;
  mode: SimulatorModeOptions;
  http?: ServiceModuleOptions['http'];
}

/** The modules of each replica. Two of each service, which differ in how they authenticate and where they call. */
export const CLIENTS = {
  acme: { service: 'acme', mode: { authentication: 'oauth' }, http: { maxSockets: 4 } },
  vault: { service: 'acme', mode: { authentication: 'mtls', oauth: true }, http: { attemptTimeout: 150 } },
  bolt: {
    service: 'bolt',
    mode: { authentication: 'oauth', clientCertificate: true, oauthMtls: true },
  },
  box: { service: 'bolt', mode: { environment: 'sandbox', oauth: true } },
} satisfies Record<string, Client>;
export type ClientName = keyof typeof CLIENTS;

export const clientOf = (name: ClientName): Client => CLIENTS[name];
export const REPLICAS = 3;
/** Milliseconds for a call that names no limit of its own. */
export const TIMEOUT_MS = 2_000;

/** One process of a fleet: all clients in one application. */
export type Replica = Record<ClientName, ReplicaClient> & { close(): Promise<void> };

interface ReplicaClient {
  auth: ServiceAuthService;
  banks: BanksService;
  customers: CustomersService;
  http: ServiceHttpService;
  sdk: LinkSdkService;
}

/** `logger` gets the lines of all levels. */
export async function startReplica(
  optionsOf: (name: ClientName) => ServiceModuleOptions,
  logger: LoggerService,
): Promise<Replica> {
  const names = Object.keys(CLIENTS) as ClientName[];
  const imports = names.map((name) => ServiceModule.forRoot({ name, ...optionsOf(name) }));
  const module = await Test.createTestingModule({ imports }).setLogger(logger).compile();
  await module.init();
  const partsOf = (name: ClientName): ReplicaClient => ({
    auth: module.get(getServiceToken(ServiceAuthService, name)),
    banks: module.get(getServiceToken(BanksService, name)),
    customers: module.get(getServiceToken(CustomersService, name)),
    http: module.get(getServiceToken(ServiceHttpService, name)),
    sdk: module.get(getServiceToken(LinkSdkService, name)),
  });
  const clients = {
    acme: partsOf('acme'),
    vault: partsOf('vault'),
    bolt: partsOf('bolt'),
    box: partsOf('box'),
  };
  return { ...clients, close: () => module.close() };
}
