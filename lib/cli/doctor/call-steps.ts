import { type AccessToken } from '../../auth/access-token.js';
import { type ResolvedOptions } from '../../config/resolved-options.js';
import { type Service } from '../../engine/create-service.js';
import { type ServiceApiError, ServiceError, ServiceTokenError, whatHappened } from '../../errors/index.js';
import { failed, ok, skipped, warning, type Finding } from './check.js';
import { type Step } from './run-steps.js';
import { type SeenAnswers } from './seen-answers.js';

/** An id that no customer has. Asking for a token creates no customer (POST /customers/v1 does). */
const MADE_UP_CUSTOMER = 'nestjs-service-doctor';

/** Tokens and the call of the banks, by a client as the application has it. What they say is what its errors say. */
export function callSteps(
  options: ResolvedOptions,
  service: Service,
  answers: SeenAnswers,
  customer?: string,
): Step[] {
  const isOAuth = options.authentication === 'oauth';
  const connected = (server: string): string[] =>
    ['connection', 'client-certificate'].map((step) => `${server}.${step}`);
  let hasToken = false;
  const apiToken: Step = {
    name: 'token.api',
    needs: connected('token-endpoint'),
    run: async (timeout, signal) => {
      const token = await service.auth.getApiToken({ timeout, signal, once: true });
      hasToken = true;
      return ok(`The token endpoint gives a token for calls of the API, ${lifetime(token)}.`);
    },
  };
  const customerToken: Step = {
    name: 'token.customer',
    needs: ['token.api'],
    run: async (timeout, signal) => {
      try {
        const token = await service.auth.getCustomerToken(customer ?? MADE_UP_CUSTOMER, {
          timeout,
          signal,
          once: true,
        });
        const whose =
          customer === undefined
            ? 'a customer id that is made up: the endpoint does not check whether there is such a customer'
            : 'this customer';
        return ok(`The token endpoint gives a token, ${lifetime(token)}, for ${whose}. It was thrown away.`);
      } catch (error) {
        if (customer !== undefined || !isUnknownCustomer(error)) throw error;
        return skipped(
          `The endpoint gives no token for a customer id that is made up (HTTP ${error.status}${error.error ? `, ${error.error}` : ''}). That is as it should be if it knows its customers; it shows nothing about yours.`,
          'Name a customer that there is: --customer <customer_id>.',
        );
      }
    },
  };
  const banks: Step = {
    name: 'api.banks',
    needs: [...connected('api'), ...(isOAuth ? ['token.api'] : [])],
    run: async (timeout, signal) => {
      // The endpoint was asked too often. Without a bearer, the API would refuse what is right.
      if (isOAuth && !hasToken) return skipped('There is no token to call with for the moment.');
      await service.banks.list({ timeout, signal });
      return ok(`GET /banks/v1: HTTP ${answers.lastStatus} with JSON.`);
    },
  };
  return [...(options.oauth ? [apiToken, customerToken] : []), banks].map((step) => ({
    ...step,
    run: (timeoutMs, signal) =>
      step.run(timeoutMs, signal).catch((error: unknown) => fromError(error, options)),
  }));
}

/** What an error of the client says, and what to do. */
function fromError(error: unknown, options: ResolvedOptions): Finding {
  if (!(error instanceof ServiceError)) throw error;
  const { describeOption, addresses } = options;
  const {
    hint = `Check ${describeOption(addresses.baseOption)}, and that ${describeOption('environment')} and ${describeOption('authentication')} are those of this application. If it was a short failure, run the check again.`,
  } = error;
  const { status, correlationId } = error as Partial<ServiceApiError>;
  const message = `${whatHappened(error)}${correlationId ? ` Correlation id: ${correlationId}.` : ''}`;
  if (status !== 429) return failed(message, hint);
  return warning(`${message} It can be reached, and did not refuse the credentials.`, hint);
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
  return seconds > 1 ? `valid for ${seconds} s` : 'without a lifetime: it is used for one second';
}
