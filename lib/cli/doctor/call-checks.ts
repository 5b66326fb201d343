import { type AccessToken, API_SCOPE, scopeOfCustomer } from '../../auth/index.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type Service } from '../../engine/create-service.js';
import { ServiceApiError, ServiceError, ServiceTokenError } from '../../errors/index.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { type Step } from './run-steps.js';
import { type SeenAnswers } from './seen-answers.js';

/** An id that no customer has. Asking for a token creates no customer (specification 4: POST /customers/v1 does). */
const MADE_UP_CUSTOMER = 'nestjs-service-doctor';

/** Tokens and the call of the banks, by a client as the application has it, without retries. */
export class CallChecks {
  readonly #options: ResolvedOptions;
  readonly #service: Service;
  readonly #answers: SeenAnswers;
  #hasToken = false;

  constructor(options: ResolvedOptions, service: Service, answers: SeenAnswers) {
    this.#options = options;
    this.#service = service;
    this.#answers = answers;
  }

  steps(customer?: string): Step[] {
    const { oauth, authentication } = this.#options;
    const tokens: Step[] = [
      {
        name: 'token.api',
        needs: ['proxy.connection', ...connected('token-endpoint')],
        run: (timeoutMs, signal) => this.#apiToken({ timeoutMs, signal }),
      },
      {
        name: 'token.customer',
        needs: ['token.api'],
        run: (timeoutMs, signal) => this.#customerToken(customer, { timeoutMs, signal }),
      },
    ];
    const needs = authentication === 'oauth' ? ['token.api'] : [];
    return [
      ...(oauth ? tokens : []),
      {
        name: 'api.banks',
        needs: [...connected('api'), ...needs],
        run: (timeout, signal) => this.#banks({ timeout, signal }),
      },
    ];
  }

  #apiToken(wait: Limits): Promise<Finding> {
    return this.#explained(async () => {
      const token = await this.#service.auth.tokenFor(API_SCOPE, { ...wait, once: true });
      this.#hasToken = true;
      return ok(`The token endpoint gives a token for calls of the API, ${lifetime(token)}.`);
    });
  }

  #customerToken(id: string | undefined, wait: Limits): Promise<Finding> {
    const scope = scopeOfCustomer(id ?? MADE_UP_CUSTOMER);
    return this.#explained(async () => {
      try {
        const token = await this.#service.auth.tokenFor(scope, { ...wait, once: true });
        const whose =
          id === undefined
            ? 'a customer id that is made up: the endpoint does not check whether there is such a customer'
            : 'this customer';
        return ok(`The token endpoint gives a token for ${whose}, ${lifetime(token)}. It was thrown away.`);
      } catch (error) {
        if (id !== undefined || !isUnknownCustomer(error)) throw error;
        return skipped(
          `The endpoint gives no token for a customer id that is made up (HTTP ${error.status}${error.error ? `, ${error.error}` : ''}). That is as it should be where it knows its customers; it shows nothing about yours.`,
          'Name a customer that there is: --customer <customer_id>.',
        );
      }
    });
  }

  async #banks(call: { timeout: number; signal: AbortSignal }): Promise<Finding> {
    // The endpoint was asked too often. Without a bearer, the API would refuse what is right.
    if (this.#options.authentication === 'oauth' && !this.#hasToken) {
      return skipped('There is no token to call with for the moment.');
    }
    return this.#explained(async () => {
      await this.#service.banks.list(call);
      return ok(`GET /banks/v1: HTTP ${this.#answers.last?.status} with JSON.`);
    });
  }

  /** What an error of the client says, and what to do. */
  async #explained(check: () => Promise<Finding>): Promise<Finding> {
    try {
      return await check();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const { hint = this.#advice(error) } = error;
      const { status, correlationId } = error as Partial<ServiceApiError>;
      const message = `${error.message}${correlationId ? ` Correlation id: ${correlationId}.` : ''}`;
      if (status !== 429) return failed(message, hint);
      return warning(`${message} It can be reached, and did not refuse the credentials.`, hint);
    }
  }

  #advice(error: ServiceError): string {
    const { describeOption, addresses } = this.#options;
    const address = describeOption(addresses.baseOption);
    if (!(error instanceof ServiceApiError)) {
      return `Run the check again: it may have been a short failure. If it stays so, check ${address}.`;
    }
    return error.status === 429
      ? 'Run the check again later.'
      : `Check ${address}, and that ${describeOption('environment')} and ${describeOption('authentication')} are those of this application. A service of this kind answers 400 to an app token and a bearer in one call: ${describeOption('sendAppTokenWithBearer')}.`;
  }
}

interface Limits {
  timeoutMs: number;
  signal: AbortSignal;
}

function connected(server: string): string[] {
  return ['name', 'connection', 'tls', 'client-certificate'].map((step) => `${server}.${step}`);
}

/** A refusal that may be about the customer alone. What is wrong with the application shows with the api token too. */
function isUnknownCustomer(error: unknown): error is ServiceTokenError {
  return (
    error instanceof ServiceTokenError &&
    error.code === 'token_refused' &&
    error.error !== 'invalid_client' &&
    error.status !== 401
  );
}

function lifetime({ expiresAt }: AccessToken): string {
  const seconds = Math.round((expiresAt.getTime() - Date.now()) / 1000);
  return seconds > 0 ? `valid for ${seconds} s` : 'without a lifetime: it is used once and not kept';
}
