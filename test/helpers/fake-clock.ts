import { EventEmitter, once } from 'node:events';
// Node's own: a test may have replaced it.
import { setImmediate } from 'node:timers/promises';
import { type Clock } from '../../lib/time/clock.js';

/** Of a reading of certificate files: its timer stands while the files are read. */
const READING_MS = 30_000;

interface Timer {
  at: number;
  delayMs: number;
  callback: () => void;
}

/** Lets code continue that waits only for promises. No time passes. */
export async function settle(): Promise<void> {
  await setImmediate();
}

export interface FakeClockOptions {
  /** The wall clock at the start. Default 2030: nothing may depend on today. */
  start?: number;
  /** Timers start real reads of files, which end before the next timer. */
  withFiles?: boolean;
}

/** A wall clock and a monotonic one. Both move only by {@link advance}, the wall clock also by {@link jump}. */
export class FakeClock implements Clock {
  readonly #timers = new Set<Timer>();
  readonly #events = new EventEmitter();
  readonly #withFiles: boolean;
  #wall: number;
  #monotonic = 1_000;

  constructor({ start = Date.UTC(2030, 0, 1), withFiles = false }: FakeClockOptions = {}) {
    this.#wall = start;
    this.#withFiles = withFiles;
  }

  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), delayMs, callback };
    this.#timers.add(timer);
    return () => {
      if (this.#timers.delete(timer)) this.#events.emit('cancel');
    };
  }

  watch(callback: () => void, delayMs: number): () => void {
    return this.schedule(callback, delayMs);
  }

  /** Sets the wall clock, as an administrator may do. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  /** Fires the timers that are due until then, in their order. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#timers.delete(next);
      this.#moveTo(next.at);
      next.callback();
      await (this.#withFiles ? this.#filesRead() : settle());
    }
    this.#moveTo(end);
  }

  #next(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= end && (!next || timer.at < next.at)) next = timer;
    return next;
  }

  #moveTo(at: number): void {
    this.#wall += Math.max(0, at - this.#monotonic);
    this.#monotonic = Math.max(at, this.#monotonic);
  }

  /** A reading has ended when its time limit is cancelled. */
  async #filesRead(): Promise<void> {
    const isReading = () => [...this.#timers].some(({ delayMs }) => delayMs === READING_MS);
    await settle();
    while (isReading()) await once(this.#events, 'cancel');
    for (let turns = 0; turns < 10; turns++) await settle();
  }
}
