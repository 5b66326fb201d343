import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RecordedRequest } from 'nestjs-service/testing';
import { type Replica, type ServiceName, SERVICES, clientOf, TIMEOUT_MS } from './clients.js';
import { playEvent } from './events.js';
import { API_FAULTS, secretsOf } from './faults.js';
import { type History, type PlannedCall } from './plan.js';
import { type Outcome, type PlayedCall } from './played-call.js';
import { type World } from './world.js';

/** A call that has not ended so long after its time limit counts as late. */
const SLACK_MS = 1_000;

/** Makes the calls of a history, while its events happen. Resolves when each has ended, or its time is over. */
export async function playHistory(world: World, { calls, events }: History): Promise<PlayedCall[]> {
  const played = new Map<string, PlayedCall>();
  const underWay: Promise<unknown>[] = [];
  planFaults(world, played);
  for (const [index, planned] of calls.entries()) {
    for (const event of events) if (event.at === index) underWay.push(playEvent(world, event));
    const call = toPlayed(planned, `call-${index}`, world.replicas[planned.replica]);
    played.set(call.id, call);
    underWay.push(playCall(world, call, world.replicas[planned.replica]));
    await sleep(planned.gap);
  }
  await Promise.all(underWay);
  return [...played.values()];
}

/** Makes the service respond to the attempts of each call with the planned faults. */
function planFaults({ services }: World, played: ReadonlyMap<string, PlayedCall>): void {
  const attempts = new Map<PlayedCall, number>();
  const known = new WeakMap<RecordedRequest, string | null>();
  const faultOf = (record: RecordedRequest): string | null => {
    const call = played.get(record.headers['x-correlation-id'] ?? '');
    if (!call) return null;
    const found = known.get(record);
    if (found !== undefined) return found;
    const attempt = attempts.get(call) ?? 0;
    attempts.set(call, attempt + 1);
    const fault = call.faults[attempt] ?? null;
    known.set(record, fault);
    return fault;
  };
  let sent = '';
  for (const own of Object.keys(SERVICES) as ServiceName[]) {
    const elsewhere = `${services[own === 'acme' ? 'bolt' : 'acme'].urls.baseUrl}/banks/v1`;
    for (const [name, make] of Object.entries(API_FAULTS)) {
      const when = (record: RecordedRequest): boolean => {
        if (faultOf(record) !== name) return false;
        sent = secretsOf(record);
        return true;
      };
      services[own].fail({ times: Infinity, when, fault: make(() => sent, elsewhere) });
    }
  }
}

export function toPlayed(planned: PlannedCall, id: string, replica: Replica): PlayedCall {
  const { subject } = replica[planned.client].auth.certificate ?? {};
  return { ...planned, id, certificate: subject, arrived: [], events: [] };
}

/** Makes one call, and records its outcome. Never rejects. */
export async function playCall(world: World, call: PlayedCall, replica: Replica): Promise<void> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(new Error('The host ended it'));
  if (call.abort !== null) call.signal = controller.signal;
  if (call.abort === -1) abort();
  const timer = call.abort === null || call.abort < 0 ? undefined : setTimeout(abort, call.abort);
  call.outcome = await outcomeOf(call, () => make(call, replica));
  clearTimeout(timer);
  if (call.kind !== 'session' || !('value' in Object(call.outcome))) return;
  await startSession(world, call, (call.outcome as { value: unknown }).value);
}

/**
 * Timers of one process fire in their order: when the first one does, that of the call has done so, on a slow machine
 * too. What the call has still to do then gets the time of the second.
 */
function outcomeOf({ timeout }: PlayedCall, work: () => Promise<unknown>): Promise<Outcome> {
  return new Promise((resolve) => {
    const late = (): void => resolve('late');
    let timer = setTimeout(() => (timer = setTimeout(late, SLACK_MS)), timeout ?? TIMEOUT_MS);
    const ended = (outcome: Outcome): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    work().then(
      (value) => ended({ value }),
      (error: unknown) => ended({ error }),
    );
  });
}

async function make(call: PlayedCall, replica: Replica): Promise<unknown> {
  const { client, kind, customer, id, signal } = call;
  const { auth, banks, customers, http, sdk } = replica[client];
  const headers = { 'x-correlation-id': id };
  const limits = { signal, timeout: call.timeout ?? undefined };
  switch (kind) {
    case 'list':
      return banks.list({ ...limits, headers });
    case 'create':
      return customers.create(
        { app_user_id: id },
        { ...limits, headers, idempotencyKey: client === 'bolt' ? true : undefined },
      );
    case 'echo':
      return http.get('/echo/v1', { ...limits, headers, params: { id } });
    case 'session':
      return sdk.connectParameters({ customer_id: customer, permissions: ['identity'] }, limits);
    case 'headers':
      return auth.authorizationHeaders(limits);
  }
}

/** Starts the session as the browser would, with the parameters from the backend. Ignores whether the session begins. */
function startSession(world: World, { client, id }: PlayedCall, parameters: unknown): Promise<void> {
  const { service, mode } = clientOf(client);
  const { urls } = world.services[service];
  const url = `${mode.environment === 'sandbox' ? urls.sandboxUrl : urls.baseUrl}/link-sdk/sessions`;
  const headers = { 'content-type': 'application/json', 'x-session': id };
  return new Promise((resolve) => {
    const outgoing = request(url, { method: 'POST', headers, agent: world.browsers[service] });
    outgoing.on('response', (response) => response.resume());
    outgoing.on('error', () => undefined);
    outgoing.on('close', resolve);
    outgoing.end(JSON.stringify(parameters));
  });
}
