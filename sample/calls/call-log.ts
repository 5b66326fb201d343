import { Global, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { type ServiceCallEvent } from 'nestjs-service';
import { Subject } from 'rxjs';

const MAX_CALLS = 20;

/** One call of the service or one request for a token, its retries included. */
export interface LoggedCall {
  method: string;
  path: string;
  /** The HTTP status, or the code of the error. */
  status: string;
  attempts: number;
  durationMs: number;
  failed: boolean;
}

/** The last calls of the service: what `http.onCall` is told. */
@Injectable()
export class CallLog implements OnApplicationShutdown {
  readonly last: LoggedCall[] = [];
  readonly calls = new Subject<LoggedCall>();

  readonly add = ({ method, path, status, error, attempts, durationMs }: ServiceCallEvent): void => {
    const call = {
      method,
      path,
      status: String(status ?? error),
      attempts,
      durationMs: Math.round(durationMs),
      failed: error !== undefined,
    };
    this.last.push(call);
    if (this.last.length > MAX_CALLS) this.last.shift();
    this.calls.next(call);
  };

  onApplicationShutdown(): void {
    this.calls.complete();
  }
}

/** One log for all modules of the service. */
@Global()
@Module({ providers: [CallLog], exports: [CallLog] })
export class CallLogModule {}
