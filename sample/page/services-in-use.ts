import {
  type BanksService,
  type CustomersService,
  type LinkSdkService,
  type ServiceAuthService,
  type ServiceCallEvent,
  type ServiceHttpService,
} from 'nestjs-service';
import { type Observable } from 'rxjs';

/** The providers of one ServiceModule, and the mode that it runs in. */
export interface ServicesInUse {
  environment: string;
  authentication: string;
  auth: ServiceAuthService;
  banks: BanksService;
  customers: CustomersService;
  http: ServiceHttpService;
  sdk: LinkSdkService;
  /** The address of the API. */
  baseUrl: string;
  /** What is there, if it is not the service itself. */
  simulator?: string;
}

/** In which mode a call was made, and what authenticated it, where that is known; nothing secret. */
export interface CallContext {
  mode: string;
  credentials?: readonly string[];
}

/** Modes to switch to, and faults to inject: names with their titles. */
export interface PageChoices {
  modes: readonly Choice[];
  /** The name of the mode in use. */
  mode?: string;
  faults: readonly FaultChoice[];
}

interface Choice {
  name: string;
  title: string;
}

/** A fault that the mode in use cannot have says why. */
interface FaultChoice extends Choice {
  impossible?: string;
}

/** What the page works with: the application's own services, or those of the playground. */
export interface PageServices {
  readonly current: ServicesInUse;
  /** What the page can switch; nothing with a service of the host's. */
  readonly choices: PageChoices;
  /** Says that the choice changed. */
  readonly switched: Observable<unknown>;
  /** Asked when the call has ended. */
  contextOf(call: ServiceCallEvent): CallContext;
}

export const PAGE_SERVICES = Symbol('PAGE_SERVICES');
