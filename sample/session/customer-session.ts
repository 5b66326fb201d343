import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable, UnauthorizedException } from '@nestjs/common';
import { type Customer } from 'nestjs-service';

const COOKIE = 'sample_session';
const MAX_SESSIONS = 1_000;

/** A request of a visitor who has a customer of the service. */
export interface CustomerRequest extends IncomingMessage {
  customerId: string;
}

/** Stands in for the sign-in of a real host: which customer belongs to which visitor, by a cookie. */
@Injectable()
export class CustomerSessions {
  readonly #customers = new Map<string, string>();

  /** Returns the customer's id; undefined, and no session, where the answer of the service has none. */
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

/** Lets a visitor pass who has a customer, and says whose session it will be. */
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
