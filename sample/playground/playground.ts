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
} from 'nestjs-service';
import { Subject } from 'rxjs';
import { faultChoices, injectFault } from './faults.js';
import { MODES } from './modes.js';
import { PageSimulator } from './page-simulator.js';
import { type PageChoices, type PageServices, type ServicesInUse } from '../page/services-in-use.js';

/** The page's choice of a mode, and its faults. */
@Injectable()
export class Playground implements PageServices, OnApplicationShutdown {
  mode = MODES[0];
  readonly switched = new Subject<void>();

  constructor(
    @Inject(PageSimulator) private readonly page: PageSimulator,
    private readonly modules: ModuleRef,
  ) {}

  get current(): ServicesInUse {
    const { name, environment, authentication } = this.mode;
    const get = <T>(type: Type<T>): T => this.modules.get<T>(getServiceToken(type, name), { strict: false });
    return {
      environment,
      authentication,
      baseUrl: this.page.urlOf(this.mode),
      auth: get(ServiceAuthService),
      banks: get(BanksService),
      customers: get(CustomersService),
      sdk: get(LinkSdkService),
    };
  }

  get choices(): PageChoices {
    return { modes: MODES, mode: this.mode.name, faults: faultChoices(this.mode) };
  }

  use(name: string): void {
    const mode = MODES.find((each) => each.name === name);
    if (mode === undefined) throw new BadRequestException(`There is no mode ${name}.`);
    this.mode = mode;
    this.switched.next();
  }

  async inject(fault: string): Promise<void> {
    await injectFault(fault, this.page.simulator, () => this.page.replaceCertificate());
  }

  async onApplicationShutdown(): Promise<void> {
    await this.page.simulator.stop();
  }
}
