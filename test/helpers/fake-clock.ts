import { EventEmitter, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { type Clock } from '../../lib/time/time.js';

/** The time limit for reading certificate files. While a timer of this length exists, files are being read. */
const READING_MS = 30_000;

interface Timer {
  at: number;
  delayMs: number;
  callback: () => void;
}

/** Lets pending promises settle. No time passes on the clock. */
export async function settle(): Promise<void> {
  await setImmediate();
}

export interface FakeClockOptions {
  /** The wall clock at the start. Default 2030: nothing may depend on today. */
  start?: number;
  /** Timers start real reads of files. {@link FakeClock.advance} then waits for each read before it fires the next timer. */
  withFiles?: boolean;
}

/** A wall clock and a monotonic clock. {@link advance} moves both, {@link jump} only the wall clock. */
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

  /** Changes the wall clock only, as an administrator or NTP may do. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  /** Moves both clocks, and fires the timers that become due, in their order. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#timers.delete(next);
      this.#moveTo(next.at);
      next.callback();
      await (this.#withFiles ? this.#waitForReads() : settle());
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

  /** Waits until the files have been read: the time limit of the read is cancelled then. */
  async #waitForReads(): Promise<void> {
    const isReading = () => [...this.#timers].some(({ delayMs }) => delayMs === READING_MS);
    await settle();
    while (isReading()) await once(this.#events, 'cancel');
    for (let turns = 0; turns < 10; turns++) await settle();
  }
}
