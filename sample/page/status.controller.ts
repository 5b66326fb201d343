import { Controller, Inject, type MessageEvent, Sse } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { concat, from, map, merge, type Observable, of, timer } from 'rxjs';
import { CallLog } from '../calls/call-log.js';
import { describeStatus } from './describe-status.js';
import { PAGE_SERVICES, type PageServices } from './services-in-use.js';

const STATUS_EVERY_MS = 1_000;

/** What happens, as it happens: server-sent events. */
@ApiExcludeController()
@Controller('page')
export class StatusController {
  constructor(
    @Inject(PAGE_SERVICES) private readonly services: PageServices,
    private readonly log: CallLog,
  ) {}

  @Sse('events')
  events(): Observable<MessageEvent> {
    const calls = concat(from([...this.log.last]), this.log.calls);
    const { switched } = this.services;
    const choices = merge(of(undefined), switched).pipe(map(() => this.services.choices));
    const status = merge(timer(0, STATUS_EVERY_MS), switched).pipe(
      map(() => describeStatus(this.services.current)),
    );
    return merge(
      choices.pipe(map(event('choices'))),
      status.pipe(map(event('status'))),
      calls.pipe(map(event('call'))),
    );
  }
}

function event(type: string): (data: object) => MessageEvent {
  return (data) => ({ type, data });
}
