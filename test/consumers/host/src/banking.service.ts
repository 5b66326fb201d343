import { Injectable } from '@nestjs/common';
import {
  BanksService,
  CustomersService,
  InjectService,
  LinkSdkService,
  ServiceAuthService,
  ServiceHttpService,
} from 'nestjs-service';

/** Injected by the types of its constructor alone, as hosts do, and by name for the second service. */
@Injectable()
export class BankingService {
  constructor(
    readonly customers: CustomersService,
    readonly banks: BanksService,
    readonly sdk: LinkSdkService,
    readonly auth: ServiceAuthService,
    readonly http: ServiceHttpService,
    @InjectService(BanksService, 'ksa') readonly ksaBanks: BanksService,
    @InjectService(ServiceAuthService, 'ksa') readonly ksaAuth: ServiceAuthService,
  ) {
    http.axiosRef.interceptors.request.use((config) => {
      config.headers.set('x-host', 'consumer');
      return config;
    });
  }
}
