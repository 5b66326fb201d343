import { keepProcessRunning, systemClock } from '../../config/clock.js';
import { type DescribeOption } from '../../config/resolved-options.js';
import { ExchangeFault, type ExchangeResponse } from '../../exchange/exchange.types.js';
import { within } from '../../exchange/timing.js';
import { type Call } from '../../http/call.js';
import { faultToError } from '../../http/fault-to-error.js';
import { type ServiceAdapterParts } from '../../http/service-adapter.js';
import { completeError } from './about-call.js';
import { type ModuleStub } from './module-stub.js';

/**
 * In the place of the runner of calls: answers from a test's doubles. Time limits and signals of a call still count.
 */
export function stubRunner(stub: ModuleStub, describeOption: DescribeOption): ServiceAdapterParts['runner'] {
  return {
    run: async (call, { signal, endsAt }) => {
      const fault = new ExchangeFault({ kind: 'timeout', phase: 'sent' });
      const expired = () => faultToError(fault, call, describeOption);
      // As a connection would: else a test runner may end before the time limit of an answer that never comes.
      const release = keepProcessRunning();
      try {
        const timeoutMs = endsAt - systemClock.monotonic();
        const limit = { clock: systemClock, timeoutMs, signals: [signal], expired };
        return toResponse(await within(limit, () => Promise.resolve(stub.answer(call))), call);
      } catch (error) {
        throw completeError(error, call);
      } finally {
        release();
      }
    },
  };
}

/** As the service would send it: a Date becomes text, and nothing is shared with the test. */
function toResponse(answer: unknown, call: Call): ExchangeResponse {
  const isRaw = !call.readsJson && (typeof answer === 'string' || answer instanceof Uint8Array);
  const isEmpty = answer === undefined;
  return {
    status: isEmpty ? 204 : 200,
    statusText: isEmpty ? 'No Content' : 'OK',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(isRaw ? answer : isEmpty ? '' : jsonOf(answer)),
    reusedSocket: false,
    untilClose: false,
  };
}

function jsonOf(answer: unknown): string {
  const text = JSON.stringify(answer) as string | undefined;
  if (text === undefined) throw new TypeError(`A double answered with a ${typeof answer}, which is no JSON.`);
  return text;
}
