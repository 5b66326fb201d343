import {
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { type ModulesContainer } from '@nestjs/core';
import { type Service } from '../engine/create-service.js';
import { countNamesakes, type ModuleName } from './module-names.js';

/** Starts and ends the client of a module. */
export class ServiceHooks
  implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #service: Service;
  readonly #own: ModuleName;
  readonly #modules: ModulesContainer;

  constructor(service: Service, own: ModuleName, modules: ModulesContainer) {
    this.#service = service;
    this.#own = own;
    this.#modules = modules;
  }

  /** Not in onModuleInit: if the host's start fails there, Nest calls no hook to stop what runs. */
  async onApplicationBootstrap(): Promise<void> {
    this.#warnOfNamesakes();
    await this.#service.start();
  }

  beforeApplicationShutdown(): void {
    this.#service.beginShutdown();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#service.close();
  }

  #warnOfNamesakes(): void {
    const namesakes = countNamesakes(this.#own, this.#modules);
    if (namesakes === 1) return;
    const { name } = this.#own;
    this.#service.log.warn(
      `${namesakes} ServiceModules ${name === undefined ? 'without a name' : `named '${name}'`} are in this ` +
        'application, each with its own tokens and connections. For one service, call forRoot() once, with isGlobal ' +
        'or in a module that exports ServiceModule; for several services, give each its own name.',
    );
  }
}
