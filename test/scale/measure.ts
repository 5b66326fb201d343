import { type Fleet } from './fleet.js';
import { type Phase } from './phases.js';
import { type TokenRequest } from './service.js';

/** What was measured in one phase. */
export interface Figures {
  phase: string;
  seconds: number;
  tokenRequests: number;
  /** Requests for one token in the time that it can be used, where there were several. */
  perLifetime: number | undefined;
  /** Times that a caller asked for a token, and calls of the API. */
  calls: number;
  failed: number;
  failures: Record<string, number>;
  warnings: Record<string, number>;
  /** Milliseconds that callers waited for a token. */
  longestWait: number;
  p99Wait: number;
  /** Milliseconds of the longest call of the API. */
  longestCall: number;
  redisPerSecond: number;
  redisCommands: Record<string, number>;
  /** Milliseconds that an event loop of the replicas stood still, at most. */
  standstill: number;
}

export async function measure(fleet: Fleet, phase: Phase, usableMs: number): Promise<Figures> {
  const before = await fleet.redisCommands();
  const begun = performance.now();
  await phase.run(fleet);
  const seconds = (performance.now() - begun) / 1_000;
  const [reports, requests, after] = await Promise.all([
    fleet.reports(),
    fleet.service.order('tokenRequests'),
    fleet.redisCommands(),
  ]);
  const tokenWaits = sorted(reports.flatMap((report) => report.tokenWaits));
  const callTimes = sorted(reports.flatMap((report) => report.callTimes));
  const failures = sumOf(reports.map((report) => report.failures));
  const redisCommands = commandsBetween(before, after);
  return {
    phase: phase.name,
    seconds,
    tokenRequests: requests.length,
    perLifetime: perLifetime(requests, usableMs),
    calls: tokenWaits.length + callTimes.length,
    failed: total(failures),
    failures,
    warnings: sumOf(reports.map((report) => report.warnings)),
    longestWait: tokenWaits.at(-1) ?? 0,
    p99Wait: tokenWaits[Math.floor(tokenWaits.length * 0.99)] ?? 0,
    longestCall: callTimes.at(-1) ?? 0,
    redisPerSecond: total(redisCommands) / seconds,
    redisCommands,
    standstill: Math.max(...reports.map((report) => report.standstill)),
  };
}

/** From the first request of each scope to its last. */
function perLifetime(requests: TokenRequest[], usableMs: number): number | undefined {
  const scopes = new Set(requests.map(({ scope }) => scope));
  let spanMs = 0;
  for (const scope of scopes) {
    const at = sorted(requests.filter((request) => request.scope === scope).map((request) => request.at));
    spanMs += (at.at(-1) ?? 0) - at[0];
  }
  return spanMs > 0 ? ((requests.length - scopes.size) * usableMs) / spanMs : undefined;
}

/** A Redis that was restarted counts from 0. */
function commandsBetween(before: Map<string, number>, after: Map<string, number>): Record<string, number> {
  const restarted = [...before].some(([name, calls]) => (after.get(name) ?? 0) < calls);
  const rows = [...after].map(([name, calls]) => [name, calls - (restarted ? 0 : (before.get(name) ?? 0))]);
  return Object.fromEntries(rows.filter(([, calls]) => calls !== 0)) as Record<string, number>;
}

function sumOf(all: Record<string, number>[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const counts of all) {
    for (const [what, times] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + times;
  }
  return sums;
}

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, times) => sum + times, 0);
}

function sorted(values: number[]): number[] {
  return values.sort((a, b) => a - b);
}
