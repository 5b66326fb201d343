import { type IncomingMessage } from 'node:http';

/** A server ends a connection after its hint: it must not be on its way then (as Node has it). */
const HINT_MARGIN_MS = 1_000;
const MAX_HINT_MS = 60_000;
/** After a longer pause, a firewall or load balancer may have forgotten the connection. */
const OLD_MS = 4_000;

/** How long a connection may be idle, in milliseconds, if the server gives no hint. */
export interface IdleLimits {
  /** When a request takes it that must not be sent twice. */
  once: number;
  /** When a request takes it that may be sent again. */
  repeatable: number;
}

/** What the agent knows of one of its connections. */
export class ConnectionState {
  /** Undefined until it has had a response. */
  limits: IdleLimits | undefined = undefined;
  /** When it became idle, by the wall clock; undefined while it has a request. */
  idleSince: number | undefined = undefined;
  /** How long it was idle before its current request, until the response. */
  wasIdleMs = 0;
  /** A TLS session ticket has come: the server has accepted the handshake, and our certificate. */
  hasTicket = false;

  /** @param origin the name of its pool */
  constructor(readonly origin: string) {}

  /** It may be dead without anybody having said so. */
  get isOld(): boolean {
    return this.wasIdleMs > OLD_MS;
  }

  idleMs(now: number): number {
    return now - (this.idleSince ?? now);
  }

  answered({ headers }: IncomingMessage, limits: IdleLimits): void {
    const hint = /\btimeout=(\d+)/i.exec(String(headers['keep-alive']))?.[1];
    const hintMs = Math.min(Number(hint) * 1000 - HINT_MARGIN_MS, MAX_HINT_MS);
    this.limits = hint ? { once: hintMs, repeatable: hintMs } : limits;
    this.wasIdleMs = 0;
  }
}
