import { Controller, Inject, type MessageEvent, Sse } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { map, merge, type Observable, of, timer } from 'rxjs';
import { describeStatus } from './describe-status.js';
import { PAGE_SERVICES, type PageServices } from './services-in-use.js';
import { ShownCalls } from './shown-calls.js';

const STATUS_EVERY_MS = 1_000;

/** Sends the status, the choices and each call to the page, as server-sent events. */
@ApiExcludeController()
@Controller('page')
export class StatusController {
  constructor(
    @Inject(PAGE_SERVICES) private readonly services: PageServices,
    private readonly calls: ShownCalls,
  ) {}

  @Sse('events')
  events(): Observable<MessageEvent> {
    const { switched } = this.services;
    const choices = merge(of(undefined), switched).pipe(map(() => this.services.choices));
    const status = merge(timer(0, STATUS_EVERY_MS), switched).pipe(
      map(() => describeStatus(this.services.current)),
    );
    return merge(
      choices.pipe(map(event('choices'))),
      status.pipe(map(event('status'))),
      this.calls.pipe(map(event('call'))),
    );
  }
}

function event(type: string): (data: object) => MessageEvent {
  return (data) => ({ type, data });
}
