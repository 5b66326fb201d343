import { type IncomingHttpHeaders } from 'node:http';
import { defined } from './own-properties.js';

/** How many calls the service still allows, as its answer said it. */
export interface RateLimit {
  limit?: number;
  remaining?: number;
  /** Seconds until it allows more. */
  resetSeconds?: number;
}

/** No server needs more. A longer one would take its time to read. */
const MAX_LENGTH = 1_024;
/** Of a list (RFC 9651, 3.1): the text of a name may have a comma in it. */
const ITEM = /(?:"(?:[^"\\]|\\.)*"|[^",])+/g;
const NAME = /"(?:[^"\\]|\\.)*"/g;
const PARAMETER = /(?:^|;)\s*([a-z]+)=(\d{1,15})/g;
/** From here on a reset is a date in seconds, and from there on one in milliseconds: no limit lasts for thirty years. */
const DATE = 1e9;
const DATE_MS = 1e12;
/** One of them is in every answer that has any. */
const FIELDS = [
  'ratelimit',
  ...['limit', 'remaining', 'reset'].flatMap((name) => [`ratelimit-${name}`, `x-ratelimit-${name}`]),
];

/**
 * Reads `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers; of several policies the one with the
 * fewest calls left), `RateLimit-Limit` and the like (earlier drafts), or `X-RateLimit-Limit` and the like.
 * @param now wall clock, milliseconds since the epoch
 */
export function rateLimitOf(headers: IncomingHttpHeaders, now: number): RateLimit | undefined {
  if (FIELDS.every((name) => headers[name] === undefined)) return undefined;
  const field = (name: string): number | undefined =>
    numberIn(headers[`ratelimit-${name}`]) ?? numberIn(headers[`x-ratelimit-${name}`]);
  const policies = itemsOf(headers.ratelimit);
  const [policy] = policies.filter(({ r }) => r !== undefined).sort((one, other) => one.r - other.r);
  // Draft 7: `limit=100, remaining=50, reset=30`.
  const fields = Object.assign({}, ...policies) as Partial<Item>;
  const quota = policy && itemsOf(headers['ratelimit-policy']).find(({ name }) => name === policy.name);
  const found = {
    limit: quota?.q ?? fields.limit ?? field('limit'),
    remaining: policy?.r ?? fields.remaining ?? field('remaining'),
    resetSeconds: secondsUntil(policy?.t ?? fields.reset ?? field('reset'), now),
  };
  return Object.values(found).some((value) => value !== undefined) ? defined(found) : undefined;
}

type Item = Record<'limit' | 'q' | 'r' | 'remaining' | 'reset' | 't', number> & { name: string };

function itemsOf(header: string | string[] | undefined): Item[] {
  return textOf(header).match(ITEM)?.map(toItem) ?? [];
}

function toItem(text: string): Item {
  const [name = text.split(';', 1)[0]] = text.match(NAME) ?? [];
  const parameters = [...text.replace(NAME, '').matchAll(PARAMETER)].map(([, key, digits]) => [
    key,
    Number(digits),
  ]);
  return { ...(Object.fromEntries(parameters) as Item), name: name.trim() };
}

/** The number that a header begins with: some have the policy behind it (`100, 100;w=60`). */
function numberIn(header: string | string[] | undefined): number | undefined {
  const [, digits] = /^\s*(\d{1,15}(?:\.\d{1,9})?)\s*(?:[,;]|$)/.exec(textOf(header)) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

function textOf(header: string | string[] | undefined): string {
  return String(header ?? '').slice(0, MAX_LENGTH);
}

function secondsUntil(reset: number | undefined, now: number): number | undefined {
  if (reset === undefined) return undefined;
  const seconds = reset < DATE ? reset : reset / (reset < DATE_MS ? 1 : 1_000) - now / 1_000;
  return Math.max(0, Math.ceil(seconds));
}
