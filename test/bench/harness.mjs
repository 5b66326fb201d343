// What all parts share: child processes to talk to, CPU time in alternating blocks, medians and tables.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const ROUND_TRIP_MS = 60_000;

/** Imports a file of lib/ as it was compiled for this run, or for another commit. */
export function built(file, lib = new URL('./.build/lib/', import.meta.url)) {
  return import(new URL(file, lib).href);
}

/** Imports the package as hosts get it, bundled for this run. */
export function packaged() {
  return import(new URL('./.build/package/node/index.js', import.meta.url).href);
}

/**
 * Starts processes/<name>.mjs in a process of its own and hands it `setup`. Resolves to what it answers and
 * `ask(question)`; it ends with `stop()`, at the latest with this process. `flags` are Node's.
 */
export async function startProcess(name, setup, flags = []) {
  const program = join(import.meta.dirname, 'processes', `${name}.mjs`);
  const child = fork(program, { stdio: 'inherit', execArgv: [...process.execArgv, ...flags] });
  const ask = async (message) => {
    child.send(message);
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(ROUND_TRIP_MS)]);
    const ended = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`The process ${name} ended (${code})`);
    });
    const [{ answer }] = await Promise.race([once(child, 'message', { signal }), ended]);
    ended.catch(() => undefined);
    done.abort();
    return answer;
  };
  const ready = await ask(setup);
  return { ...ready, ask, stop: () => child.disconnect() };
}

/** Runs `count` calls, `concurrency` at a time. */
export async function callAll(call, count, concurrency) {
  let left = count;
  const worker = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker));
}

/** Microseconds of this process's CPU for each of `count` calls. */
export async function cpuPerCall(call, count, concurrency) {
  const before = process.cpuUsage();
  await callAll(call, count, concurrency);
  return cpuSince(before) / count;
}

/**
 * Blocks of calls, contender after contender, round after round, each round beginning with another one: what disturbs
 * the machine disturbs all of them. A contender's `block(count)` resolves to the CPU of one call. Resolves to one list
 * of samples for each contender, one sample a round.
 */
export async function alternate(contenders, { rounds, calls, warmUp = calls }) {
  const samples = new Map(contenders.map(({ name }) => [name, []]));
  for (const { block } of contenders) await block(warmUp);
  for (let round = 0; round < rounds; round += 1) {
    const order = contenders.map((_, i) => contenders[(i + round) % contenders.length]);
    for (const { name, block } of order) samples.get(name).push(await block(calls));
  }
  return samples;
}

/** The fifth of the rounds in which the contenders together took least: what disturbs them only ever adds. */
export function quietestRounds(samples) {
  const relative = [...samples.values()].map((values) => {
    const usual = median(values);
    return values.map((value) => value / usual);
  });
  const totals = relative[0].map((_, i) => relative.reduce((sum, values) => sum + values[i], 0));
  const order = totals.map((_, i) => i).sort((a, b) => totals[a] - totals[b]);
  return order.slice(0, Math.ceil(order.length / 5));
}

/** Of each contender what it has of these rounds. */
export function inRounds(samples, rounds) {
  return new Map([...samples].map(([name, values]) => [name, rounds.map((round) => values[round])]));
}

/** Microseconds of CPU, user and system, of this process. */
export function cpuSince(before) {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The ratio within each round. */
export function ratios(samples, name, to) {
  const divisors = samples.get(to);
  return samples.get(name).map((value, i) => value / divisors[i]);
}

export function ratio(samples, name, to) {
  return median(ratios(samples, name, to));
}

/** Rows of a table of {@link alternate}: CPU, and the ratios to the named contenders. Each with its spread. */
export function ratioRows(samples, unit, ...to) {
  return [...samples].map(([contender, values]) => ({
    contender,
    [unit]: spread(values),
    ...Object.fromEntries(to.map((other) => [`/ ${other}`, spread(ratios(samples, contender, other), 2)])),
  }));
}

/** The median and, behind it, the least and the most: `0.26 (0.24-0.31)`. */
export function spread(values, digits = 0) {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)];
  const [shown, from, to] = [middle, least, most].map((value) => round(value, digits));
  return from === to ? String(shown) : `${shown} (${from}-${to})`;
}

export function round(value, digits = 0) {
  return Number(value.toFixed(digits));
}

/** A Markdown table. */
export function toMarkdown(rows) {
  const names = Object.keys(rows[0]);
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '')))];
  const widths = names.map((_, i) => Math.max(...cells.map((row) => row[i].length)));
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [line(cells[0]), rule, ...cells.slice(1).map(line)].join('\n');
}

/** For the terminal. */
export function printTable(title, rows) {
  console.log(`\n### ${title}\n\n${toMarkdown(rows)}`);
}

/** For the terminal, and for the figures of README.md, which show the `columns`: none that depends on the machine. */
export function publishTable(title, rows, columns = Object.keys(rows[0])) {
  printTable(title, rows);
  const shown = rows.map((row) => Object.fromEntries(columns.map((column) => [column, row[column]])));
  process.send?.({ title, rows: shown });
}

/** Prints a figure beside its target, and MISSED where it is missed. Never fails. */
export function printFigure(name, value, target) {
  const verdict = target === undefined ? '' : ` (target <= ${target}${value <= target ? '' : ': MISSED'})`;
  console.log(`${name}: ${value}${verdict}`);
}

/** A condition of the bench. Where it is false, the bench is broken and its figures mean nothing. */
export function must(condition, message) {
  if (!condition) throw new Error(`The bench is broken: ${message}`);
}
