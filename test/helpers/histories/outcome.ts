import { getEventListeners } from 'node:events';
import {
  ServiceApiError,
  ServiceCertificateError,
  ServiceConnectionError,
  ServiceError,
  ServiceTokenError,
} from 'nestjs-service';
import { everyForm } from '../secret-scan.js';
import { clientOf } from './clients.js';
import { SECRET } from './faults.js';
import { type PlayedCall } from './played-call.js';
import { subjectOf, wrongHeaders } from './wire.js';
import { type World } from './world.js';

/** The errors with which a call with valid input may reject (docs/calls.md). */
const OURS = [ServiceApiError, ServiceConnectionError, ServiceTokenError, ServiceCertificateError];

/** The faults in the outcome of a call. */
export function wrongOutcome(world: World, call: PlayedCall): string[] {
  const { outcome, signal, arrived, events } = call;
  if (outcome === undefined || outcome === 'late') return ['did not end within its time limit'];
  const faults =
    'error' in outcome ? wrongError(call, outcome.error) : wrongValue(world, call, outcome.value);
  if (signal && getEventListeners(signal, 'abort').length > 0) faults.push('left a listener on its signal');
  if (events.length > 1) faults.push(`had ${events.length} events of http.onCall`);
  const [event] = events;
  if (arrived.length > 0 && !event) faults.push('was sent, but had no event of http.onCall');
  if (arrived.length > (event?.attempts ?? 0))
    faults.push(`had an event with ${event?.attempts} attempts, of ${arrived.length} that arrived`);
  return [...faults, ...wrongEffect(world, call, outcome), ...wrongAttempts(world, call)];
}

function wrongError({ signal, faults }: PlayedCall, error: unknown): string[] {
  const wrong: string[] = [];
  const text = everyForm(error);
  if (SECRET.test(text)) wrong.push(`rejected with a secret: ${text}`);
  if (signal?.aborted && error === signal.reason) return wrong;
  if (!(error instanceof ServiceError) || !OURS.some((type) => error instanceof type)) {
    return [...wrong, `rejected with what is not ours: ${text}`];
  }
  if (error.cause !== undefined) wrong.push('rejected with a cause');
  if (error.code === 'invalid_response' && !faults.some((name) => name === 'page' || name === 'empty')) {
    wrong.push(`could not read an answer: ${error.message}`);
  }
  return wrong;
}

/** A call must get its own response, and not that of another call. */
function wrongValue(world: World, call: PlayedCall, value: unknown): string[] {
  const { kind, client, customer, id, faults } = call;
  const { service } = clientOf(client);
  const answer = value as Record<string, unknown> | undefined;
  switch (kind) {
    case 'list':
      return String(value) === service ? [] : [`got ${JSON.stringify(value)}`];
    case 'create':
      // The response had a status 2xx and no body.
      if (answer === undefined) return faults.includes('empty') ? [] : ['got nothing'];
      return answer.app_user_id === id ? [] : [`got the answer of ${String(answer.app_user_id)}`];
    case 'echo':
      return JSON.stringify(answer?.query) === JSON.stringify({ id })
        ? []
        : [`got ${JSON.stringify(answer)}`];
    case 'headers':
      return wrongHeaders(world, client, Object.entries(value as Record<string, string>));
    case 'session':
      return subjectOf(world, service, answer?.access_token).startsWith(`customer.${customer} `)
        ? []
        : ['got the token of another'];
  }
}

/** A POST must be executed at most once. If its error says that it was not executed, the service must not have executed it. */
function wrongEffect(
  world: World,
  call: PlayedCall,
  outcome: { value: unknown } | { error: unknown },
): string[] {
  const { kind, client, id, arrived, signal, faults } = call;
  if (kind !== 'create') return [];
  const { customers } = world.services[clientOf(client).service];
  const done = customers.filter(({ app_user_id }) => app_user_id === id).length;
  const keys = new Set<string | undefined>(arrived.map(({ headers }) => headers['idempotency-key']));
  const isKeyed = client === 'bolt';
  if (isKeyed && (keys.size > 1 || keys.has(undefined)))
    return [`was sent with the keys ${[...keys].join()}`];
  if (!isKeyed && done > 1) return [`was executed ${done} times`];
  if ('value' in outcome) return done > 0 || faults.includes('empty') ? [] : ['was not executed'];
  const { error } = outcome;
  if (signal?.aborted && error === signal.reason) return [];
  const { outcomeUnknown = false, idempotencyKey } = error as Partial<ServiceConnectionError>;
  // The response to a second attempt: the path of customers does not support idempotency keys.
  if (isKeyed && done === 1 && error instanceof ServiceApiError && error.status === 409) return [];
  if (done > 0 && !outcomeUnknown) return [`was executed, but rejected with ${String(error)}`];
  const isOwnKey = arrived.length === 0 ? idempotencyKey !== undefined : keys.has(idempotencyKey);
  return isKeyed && outcomeUnknown && !isOwnKey ? ['rejected without its key'] : [];
}

const MAX_ATTEMPTS = 10;

/** A further attempt may follow only a failure. For a change that was sent, the failure must prove that it was not executed. */
function wrongAttempts({ drops }: World, { kind, client, arrived, faults }: PlayedCall): string[] {
  if (arrived.length > MAX_ATTEMPTS) return [`was sent ${arrived.length} times`];
  return arrived.slice(1).flatMap((next, index) => {
    const { status = 0, receivedAt } = arrived[index];
    const isRefused = [400, 401, 429].includes(status);
    if (kind === 'create' && client !== 'bolt') return isRefused ? [] : [`was sent again after ${status}`];
    const isLost = drops.some((at) => at >= receivedAt && at <= next.receivedAt);
    // This client sets a short `attemptTimeout`.
    const mayBeSlow = client === 'vault';
    const failed = status === 0 || status >= 400 || (faults[index] ?? null) !== null;
    return failed || isLost || mayBeSlow ? [] : [`was sent again after ${status}`];
  });
}
