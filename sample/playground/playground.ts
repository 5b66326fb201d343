import {
  BadRequestException,
  Inject,
  Injectable,
  type OnApplicationShutdown,
  type Type,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  BanksService,
  CustomersService,
  getServiceToken,
  LinkSdkService,
  ServiceAuthService,
  type ServiceCallEvent,
  ServiceHttpService,
} from 'nestjs-service';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { Subject } from 'rxjs';
import { Arrivals, describeCredentials } from './arrivals.js';
import { faultChoices, injectFault } from './faults.js';
import { MODES } from './modes.js';
import { Simulators } from './simulators.js';
import {
  type CallContext,
  type PageChoices,
  type PageServices,
  type ServicesInUse,
} from '../page/services-in-use.js';

/** Keeps the current mode of the page, and injects faults. */
@Injectable()
export class Playground implements PageServices, OnApplicationShutdown {
  mode = MODES[0];
  readonly switched = new Subject<void>();
  readonly #arrivals = new Arrivals();

  constructor(
    @Inject(Simulators) private readonly simulators: Simulators,
    private readonly modules: ModuleRef,
  ) {}

  /** The simulator of the current mode. */
  get simulator(): ServiceSimulator {
    return this.simulators.of(this.mode);
  }

  get current(): ServicesInUse {
    const { name, environment, authentication, address, oauth } = this.mode;
    const get = <T>(type: Type<T>): T => this.modules.get<T>(getServiceToken(type, name), { strict: false });
    return {
      environment,
      authentication,
      baseUrl: this.simulator.urls[address],
      simulator: `simulator of an application ${oauth === 'disabled' ? 'without OAuth' : 'with OAuth enabled'}`,
      auth: get(ServiceAuthService),
      banks: get(BanksService),
      customers: get(CustomersService),
      http: get(ServiceHttpService),
      sdk: get(LinkSdkService),
    };
  }

  get choices(): PageChoices {
    return { modes: MODES, mode: this.mode.name, faults: faultChoices(this.mode) };
  }

  use(name: string): void {
    const mode = MODES.find((each) => each.name === name);
    if (mode === undefined)
      throw new BadRequestException(
        `There is no mode '${name}'. Known: ${MODES.map((each) => each.name).join(', ')}.`,
      );
    this.mode = mode;
    this.switched.next();
  }

  async inject(fault: string): Promise<void> {
    await injectFault(fault, this.simulator, this.simulators);
  }

  /** A call without a module name comes from the routes of the application. */
  contextOf(call: ServiceCallEvent): CallContext {
    const mode = MODES.find(({ name }) => name === call.module);
    const simulator = mode ? this.simulators.of(mode) : this.simulators.withOAuth;
    const credentials = describeCredentials(this.#arrivals.of(call, simulator));
    return { mode: mode?.title ?? 'The routes of this sample', credentials };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.simulators.stop();
  }
}
