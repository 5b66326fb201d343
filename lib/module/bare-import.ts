import { type FactoryProvider } from '@nestjs/common';
import { ServiceConfigurationError } from '../errors/index.js';
import { MODULE_OPTIONS_TOKEN } from './definition.js';
import { MODULE_NAME } from './module-names.js';

/**
 * For `imports: [ServiceModule]`, which Nest's message about a missing provider suggests. They belong to the class
 * itself. Those of forRoot() and forRootAsync() come after them, and Nest takes the last provider of a token.
 */
export const bareImportProviders: FactoryProvider[] = [MODULE_NAME, MODULE_OPTIONS_TOKEN].map((provide) => ({
  provide,
  useFactory: () => {
    const message =
      'has the class ServiceModule itself, which has no options. Import ServiceModule.forRoot() once, with ' +
      '{ isGlobal: true }, or in one module of yours that exports ServiceModule. Other modules then import nothing, or ' +
      'that module of yours.';
    throw new ServiceConfigurationError([{ option: 'imports', message }]);
  },
}));
