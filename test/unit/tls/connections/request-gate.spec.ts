import { describe, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { type ClientRequest } from 'node:http';
import { closedError, RequestGate } from '../../../../lib/tls/connections/request-gate.js';
import { settle } from '../../../helpers/fake-clock.js';

/** As far as a gate knows a request. */
class FakeRequest extends EventEmitter {
  destroyed = false;
  failed?: Error | 'with its own error';

  onSocket(_socket: null, error?: Error): void {
    this.failed = error ?? 'with its own error';
    process.nextTick(() => this.emit('close'));
  }
}

function setUp(maxRunning = 1) {
  const limit = { maxRunning };
  const gate = new RequestGate(() => limit.maxRunning);
  const started: string[] = [];
  const enter = (name: string, place = 'a:443', start = () => void started.push(name)) => {
    const request = new FakeRequest();
    gate.enter(place, request as unknown as ClientRequest, start);
    return request;
  };
  return { gate, limit, started, enter };
}

describe('RequestGate', () => {
  it('lets so many run for each place, and the others in their order', async () => {
    const { gate, started, enter } = setUp(2);
    const requests = ['1', '2', '3', '4'].map((name) => enter(name));
    enter('other', 'b:443');
    expect(started).toEqual(['1', '2', 'other']);
    expect(Object.entries(gate.waiting).map(([place, { length }]) => [place, length])).toEqual([
      ['a:443', 2],
    ]);
    requests[1]?.emit('close');
    await settle();
    expect(started).toEqual(['1', '2', 'other', '3']);
    requests[0]?.emit('close');
    requests[2]?.emit('close');
    await settle();
    expect(started).toEqual(['1', '2', 'other', '3', '4']);
    expect(gate.waiting).toEqual({});
  });

  it('lets nothing pass those that wait, also between the end of one and the turn of the next', async () => {
    const { started, enter } = setUp();
    const first = enter('1');
    const second = enter('2');
    first.emit('close');
    enter('3');
    expect(started).toEqual(['1']);
    await settle();
    expect(started).toEqual(['1', '2']);
    second.emit('close');
    await settle();
    expect(started).toEqual(['1', '2', '3']);
  });

  it('starts the next one only when the connection of the one before is free', async () => {
    const { started, enter } = setUp();
    const first = enter('1');
    enter('2');
    first.once('close', () => started.push('free'));
    first.emit('close');
    await settle();
    expect(started).toEqual(['1', 'free', '2']);
  });

  it('heeds a limit that a host changes', async () => {
    const { limit, started, enter } = setUp();
    const first = enter('1');
    ['2', '3'].forEach((name) => enter(name));
    limit.maxRunning = 2;
    first.emit('close');
    await settle();
    expect(started).toEqual(['1', '2', '3']);
  });

  it('heeds a raised one with the next request, which comes after those that wait', async () => {
    const { limit, started, enter } = setUp();
    ['1', '2'].forEach((name) => enter(name));
    limit.maxRunning = 3;
    ['3', '4'].forEach((name) => enter(name));
    await settle();
    expect(started).toEqual(['1', '2', '3']);
  });

  it('starts none that nobody waits for any more: it ends with its own error', async () => {
    const { started, enter } = setUp();
    const first = enter('1');
    const [second] = ['2', '3'].map((name) => enter(name));
    if (second) second.destroyed = true;
    first.emit('close');
    await settle();
    expect([started, second?.failed]).toEqual([['1', '3'], 'with its own error']);
  });

  it('one that cannot start ends with the reason, and gives its place to the next', async () => {
    const { started, enter } = setUp();
    const failing = enter('1', 'a:443', () => {
      throw new Error('no such port');
    });
    enter('2');
    await once(failing, 'close');
    await settle();
    expect([started, failing.failed]).toEqual([['2'], new Error('no such port')]);
  });

  it('starts one in the async context in which it came', async () => {
    const { enter } = setUp();
    const caller = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const first = caller.run('first', () => enter('1'));
    caller.run('second', () => enter('2', 'a:443', () => void seen.push(caller.getStore())));
    caller.run('first', () => first.emit('close'));
    await settle();
    expect(seen).toEqual(['second']);
  });

  it('anew, those that wait start, whatever runs; and that frees no place when it ends', async () => {
    const { gate, started, enter } = setUp();
    const [first] = ['1', '2', '3'].map((name) => enter(name));
    gate.renew();
    expect(started).toEqual(['1', '2']);
    first?.emit('close');
    await settle();
    expect(started).toEqual(['1', '2']);
    expect(Object.values(gate.waiting)).toHaveLength(1);
  });

  it('tells when nothing runs or waits: what ran before it was renewed too', async () => {
    const { gate, enter } = setUp();
    const told: string[] = [];
    gate.whenEmpty(() => told.push('at once'));
    expect(told).toEqual(['at once']);
    const [first, second, third] = ['1', '2', '3'].map((name) => enter(name));
    gate.renew();
    gate.whenEmpty(() => told.push('one'));
    gate.whenEmpty(() => told.push('two'));
    gate.endWaiting(closedError());
    expect(third?.failed).toMatchObject({ code: 'ERR_AGENT_CLOSED' });
    second?.emit('close');
    await settle();
    expect(told).toEqual(['at once']);
    first?.emit('close');
    expect(told).toEqual(['at once', 'one', 'two']);
  });

  it('is not empty while one waits for its turn, and is once all that waited are gone', async () => {
    const { gate, started, enter } = setUp();
    const [first, second, third] = ['1', '2', '3'].map((name) => enter(name));
    first?.emit('close');
    const told: string[] = [];
    gate.whenEmpty(() => told.push('empty'));
    expect(told).toEqual([]);
    await settle();
    expect(started).toEqual(['1', '2']);
    if (third) third.destroyed = true;
    second?.emit('close');
    expect(told).toEqual([]);
    await settle();
    expect(told).toEqual(['empty']);
  });
});
