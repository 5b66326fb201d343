import { Global, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { type ServiceCallEvent } from 'nestjs-service';
import { Subject } from 'rxjs';

/** The calls of the service as they end: what `http.onCall` is told. */
@Injectable()
export class CallLog implements OnApplicationShutdown {
  readonly calls = new Subject<ServiceCallEvent>();

  readonly add = (call: ServiceCallEvent): void => this.calls.next(call);

  onApplicationShutdown(): void {
    this.calls.complete();
  }
}

/** One log for all modules of the service. */
@Global()
@Module({ providers: [CallLog], exports: [CallLog] })
export class CallLogModule {}
