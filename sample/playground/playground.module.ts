import { type DynamicModule, Module } from '@nestjs/common';
import { PAGE_SERVICES } from '../page/services-in-use.js';
import { LinkSdkController } from './link-sdk.controller.js';
import { PlaygroundController } from './playground.controller.js';
import { Playground } from './playground.js';
import { Simulators } from './simulators.js';

/** The modes of the module on simulators, for the page to switch between. */
@Module({})
export class PlaygroundModule {
  /** Also configures this process for one of the simulators, as a .env would: for the routes. */
  static async start(): Promise<DynamicModule> {
    const simulators = await Simulators.start();
    Object.assign(process.env, simulators.variables);
    return {
      module: PlaygroundModule,
      imports: simulators.modules(),
      controllers: [PlaygroundController, LinkSdkController],
      providers: [
        { provide: Simulators, useValue: simulators },
        Playground,
        { provide: PAGE_SERVICES, useExisting: Playground },
      ],
      exports: [PAGE_SERVICES],
    };
  }
}
