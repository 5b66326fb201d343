import { type Type } from '@nestjs/common';
import { ServiceAuthService } from '../auth/service-auth.service.js';
import { BanksService } from '../banks/banks.service.js';
import { CustomersService } from '../customers/customers.service.js';
import { ServiceHttpService } from '../http/service-http.service.js';
import { LinkSdkService } from '../link-sdk/link-sdk.service.js';

/** What a host can inject. */
export const publicProviders: readonly Type[] = [
  ServiceAuthService,
  ServiceHttpService,
  CustomersService,
  BanksService,
  LinkSdkService,
] as readonly Type[];
