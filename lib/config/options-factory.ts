import { type ServiceModuleOptions } from './options.js';

/** What `useClass` and `useExisting` of ServiceModule.forRootAsync name. */
export interface ServiceOptionsFactory {
  createServiceOptions(): ServiceModuleOptions | Promise<ServiceModuleOptions>;
}
