import { type DynamicModule, Module } from '@nestjs/common';
import { AppModule } from '../app.module.js';
import { HostServices } from './host-services.js';
import { PageController } from './page.controller.js';
import { PAGE_SERVICES } from './services-in-use.js';
import { ShownCalls } from './shown-calls.js';
import { StatusController } from './status.controller.js';

/** The application with the page. With a playground the page uses its simulators, otherwise the application's services. */
@Module({})
export class PageModule {
  static forRoot(playground?: DynamicModule): DynamicModule {
    return {
      module: PageModule,
      imports: playground ? [AppModule, playground] : [AppModule],
      controllers: [PageController, StatusController],
      providers: playground ? [ShownCalls] : [ShownCalls, { provide: PAGE_SERVICES, useClass: HostServices }],
    };
  }
}
