import fc from 'fast-check';
import { CLIENTS, REPLICAS, SERVICES } from './clients.js';
import { API_FAULTS, CONNECTION_FAULTS, TOKEN_FAULTS } from './faults.js';

/** A call of one caller, and the faults of its attempts. */
export interface PlannedCall {
  replica: number;
  client: keyof typeof CLIENTS;
  kind: 'list' | 'create' | 'echo' | 'session' | 'headers';
  customer: string;
  /** Milliseconds until the next call begins. */
  gap: number;
  /** The time limit in milliseconds. null: the default of the client. */
  timeout: number | null;
  /** Milliseconds until the caller aborts the call. -1: before the call begins. null: never. */
  abort: number | null;
  /** The faults of the first attempts that reach the service. null: a normal response. */
  faults: (keyof typeof API_FAULTS | null)[];
}

/** An event that affects all clients, just before the call with the number `at`. */
export type PlannedEvent = { at: number } & (
  | {
      kind: 'revoke tokens' | 'rotate secret' | 'drop connections' | 'impostor';
      service: keyof typeof SERVICES;
    }
  | { kind: 'token fault'; service: keyof typeof SERVICES; fault: keyof typeof TOKEN_FAULTS; times: number }
  | { kind: 'connection fault'; service: keyof typeof SERVICES; fault: keyof typeof CONNECTION_FAULTS }
  | { kind: 'rotate certificate'; client: 'vault' | 'bolt'; isTold: boolean; isRevoked: boolean }
  | { kind: 'flush store' | 'mix store up' | 'store works' | 'store fails' | 'store hangs' | 'store is slow' }
  | { kind: 'restart'; replica: number }
);

export interface History {
  calls: PlannedCall[];
  events: PlannedEvent[];
}

const keysOf = <T extends object>(table: T) => fc.constantFrom(...(Object.keys(table) as (keyof T)[]));
const replica = fc.nat(REPLICAS - 1);
const service = keysOf(SERVICES);

const call: fc.Arbitrary<PlannedCall> = fc.record({
  replica,
  client: keysOf(CLIENTS),
  kind: fc.constantFrom('list', 'list', 'create', 'echo', 'session', 'headers'),
  customer: fc.constantFrom('c-1', 'c-2', 'c-3', 'c-4'),
  gap: fc.nat(6),
  timeout: fc.oneof(
    { weight: 9, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 60 }) },
    { weight: 1, arbitrary: fc.integer({ min: 60, max: 1_500 }) },
  ),
  abort: fc.oneof(
    { weight: 14, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.integer({ min: -1, max: 100 }) },
  ),
  faults: fc.oneof(
    { weight: 6, arbitrary: fc.constant<PlannedCall['faults']>([]) },
    {
      weight: 1,
      arbitrary: fc.array<PlannedCall['faults'][number]>(keysOf(API_FAULTS), { minLength: 1, maxLength: 3 }),
    },
  ),
});

function eventBefore(calls: number): fc.Arbitrary<PlannedEvent> {
  const at = fc.nat(calls - 1);
  const kinds = <T extends PlannedEvent['kind']>(...all: T[]) => fc.constantFrom(...all);
  return fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        at,
        kind: kinds('revoke tokens', 'rotate secret', 'drop connections', 'impostor'),
        service,
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        at,
        kind: kinds('token fault'),
        service,
        fault: keysOf(TOKEN_FAULTS),
        times: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        at,
        kind: kinds('connection fault'),
        service,
        fault: keysOf(CONNECTION_FAULTS),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        at,
        kind: kinds('rotate certificate'),
        client: fc.constantFrom('vault', 'bolt'),
        isTold: fc.boolean(),
        isRevoked: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        at,
        kind: kinds(
          'flush store',
          'mix store up',
          'store works',
          'store works',
          'store fails',
          'store hangs',
          'store is slow',
        ),
      }),
    },
    { weight: 1, arbitrary: fc.record({ at, kind: kinds('restart'), replica }) },
  );
}

/** The same seed gives the same history. */
export function planHistory(seed: number, calls: number): History {
  const history = fc.record({
    calls: fc.array(call, { minLength: calls, maxLength: calls }),
    events: fc.array(eventBefore(calls), {
      minLength: Math.floor(calls / 25),
      maxLength: Math.floor(calls / 12),
    }),
  });
  return fc.sample(history, { seed, numRuns: 1, unbiased: true })[0];
}
