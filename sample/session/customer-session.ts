import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { type Customer } from 'nestjs-service';

const COOKIE = 'sample_session';
const MAX_SESSIONS = 1_000;

/** A request that has passed {@link CustomerGuard}. */
export interface CustomerRequest extends IncomingMessage {
  customerId: string;
}

/** Remembers the customer of each visitor with a cookie. In a real application the sign-in does this. */
@Injectable()
export class CustomerSessions {
  readonly #customers = new Map<string, string>();

  /** Starts a session and returns the customer's id. Without an id in the service's response, returns undefined. */
  begin(response: ServerResponse, customer: Customer | undefined): string | undefined {
    const customerId: unknown = customer?.customer_id;
    if (typeof customerId !== 'string') return undefined;
    const session = randomUUID();
    this.#customers.set(session, customerId);
    if (this.#customers.size > MAX_SESSIONS) {
      const [oldest = ''] = this.#customers.keys();
      this.#customers.delete(oldest);
    }
    response.setHeader('set-cookie', `${COOKIE}=${session}; Path=/; HttpOnly; SameSite=Strict`);
    return customerId;
  }

  customerOf({ headers }: IncomingMessage): string | undefined {
    const session = new RegExp(`(?:^|; )${COOKIE}=([^;]+)`).exec(headers.cookie ?? '')?.[1];
    return session === undefined ? undefined : this.#customers.get(session);
  }
}

/** Requires a session with a customer, and puts the customer's id on the request. */
@Injectable()
export class CustomerGuard implements CanActivate {
  constructor(private readonly sessions: CustomerSessions) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<CustomerRequest>();
    const customerId = this.sessions.customerOf(request);
    if (customerId === undefined) throw new UnauthorizedException('Create a customer first.');
    request.customerId = customerId;
    return true;
  }
}
