import { type DynamicModule, Module } from '@nestjs/common';
import { PAGE_SERVICES } from '../page/services-in-use.js';
import { LinkSdkController } from './link-sdk.controller.js';
import { PageSimulator } from './page-simulator.js';
import { PlaygroundController } from './playground.controller.js';
import { Playground } from './playground.js';

/** The five modes of the module on a simulator, for the page to switch between. */
@Module({})
export class PlaygroundModule {
  static async start(): Promise<DynamicModule> {
    const simulator = await PageSimulator.start();
    return {
      module: PlaygroundModule,
      imports: simulator.modules(),
      controllers: [PlaygroundController, LinkSdkController],
      providers: [
        { provide: PageSimulator, useValue: simulator },
        Playground,
        { provide: PAGE_SERVICES, useExisting: Playground },
      ],
      exports: [PAGE_SERVICES],
    };
  }
}
