import { type DynamicModule, Module } from '@nestjs/common';
import { PAGE_SERVICES } from '../page/services-in-use.js';
import { LinkSdkController } from './link-sdk.controller.js';
import { PlaygroundController } from './playground.controller.js';
import { Playground } from './playground.js';
import { Simulators } from './simulators.js';

/** One ServiceModule for each mode, connected to simulators. The page switches between them. */
@Module({})
export class PlaygroundModule {
  /** Also sets the SERVICE_* variables of this process, like a .env, so that the application's routes use a simulator. */
  static async start(): Promise<DynamicModule> {
    const simulators = await Simulators.start();
    Object.assign(process.env, simulators.variables);
    return {
      module: PlaygroundModule,
      imports: simulators.makeModules(),
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
