import { type Figures } from './measure.js';
import { type Phase } from './phases.js';

const MOST_PER_LIFETIME = 1.4;

/** What is promised and did not hold. */
export function brokenBounds(
  phase: Phase,
  figures: Figures,
  { scopes, renewalMs }: { scopes: number; renewalMs: number },
): string[] {
  const { tokenRequests, perLifetime, seconds, failed, failures } = figures;
  const broken: string[] = [];
  const most = scopes * (1 + Math.floor((seconds * 1_000) / renewalMs) + (phase.extraRequests ?? Infinity));
  if (tokenRequests > most) broken.push(`${tokenRequests} token requests, at most ${most} are promised`);
  if (phase.extraRequests === 0 && perLifetime !== undefined && perLifetime > MOST_PER_LIFETIME) {
    broken.push(`${perLifetime.toFixed(2)} requests in the life of a token, at most ${MOST_PER_LIFETIME}`);
  }
  if (failed > 0 && !phase.callsMayFail) {
    const [[first]] = Object.entries(failures);
    broken.push(`${failed} failed calls: ${first}`);
  }
  return broken.map((what) => `${phase.name}: ${what}`);
}

/** A Markdown table, for the terminal and the guide. */
export function tableOf(all: Figures[]): string {
  const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
  const rows = all.map((figures) => [
    figures.phase,
    whole(figures.seconds),
    whole(figures.tokenRequests),
    figures.perLifetime?.toFixed(2) ?? '',
    whole(figures.calls),
    whole(figures.failed),
    whole(figures.longestWait),
    figures.p99Wait.toFixed(1),
    whole(figures.longestCall),
    whole(figures.redisPerSecond),
    whole(figures.standstill),
  ]);
  const head = [
    'phase',
    's',
    'token requests',
    'in a life',
    'calls',
    'failed',
    'longest wait for a token, ms',
    'p99, ms',
    'longest API call, ms',
    'Redis commands/s',
    'longest standstill, ms',
  ];
  const line = (cells: string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
