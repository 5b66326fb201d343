import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isJsonObject } from '../exchange/response.js';
import { type SimulatedRequest, type SimulatorAnswer, type SimulatorRoutes } from './answer-book.js';
import { failure } from './servers/answer.js';

/** Options of {@link knownApiRoutes}. */
export interface KnownApiOptions {
  /** The number of transactions of each account. Default: 120, which are three pages of 50. */
  transactions?: number | undefined;
  /** How many reads of an account's transactions get PENDING before the data is ready. Default: 1. */
  pendingReads?: number | undefined;
}

/** The state of collecting one account's transactions: the number of PENDING responses left, and the final response. */
interface Collection {
  results_id: string;
  pendingReads: number;
  result: () => SimulatorAnswer;
}

/**
 * Further routes of the API, as they were observed at the service, for `simulator.answer()` and the command's `--routes`: a
 * customer by `app_user_id`, entities, accounts, balances, transactions and payment intents. Every customer of the simulator
 * has one entity with two accounts. Each call of this function starts without payment intents and collected transactions.
 *
 * - Pages are numbered from 0. Parameters: `page` and `size` (default 50), or `page_number` and `page_size`. The response has
 *   their number in `page.total_pages`.
 * - The first read of an account's transactions gets 200, PENDING and a `results_id`. The client then fetches
 *   the transactions with `GET /data/v2/results/{results_id}`.
 * - `POST /payments/v1/intents` requires the header `idempotency-key`. A repeated key returns the first intent.
 *
 * @example simulator.answer(knownApiRoutes({ transactions: 1_000 }));
 */
export function knownApiRoutes(options: KnownApiOptions = {}): SimulatorRoutes {
  const { transactions = 120, pendingReads = 1 } = options;
  const collections = new Map<string, Collection>();
  const intents = new Map<string, { request: object; json: { payment_intent_id: string } }>();

  function readCollection(collection: Collection, result = collection.result): SimulatorAnswer {
    if (collection.pendingReads <= 0) return result();
    collection.pendingReads -= 1;
    const { results_id } = collection;
    return { json: { status: 'PENDING', results_id, message: 'The data is being collected' } };
  }

  return {
    'GET /customers/v1/app-user-id/{app_user_id}': ({ customers, pathParams }) =>
      answerIfFound(customers.find(({ app_user_id }) => app_user_id === pathParams.app_user_id)),
    'GET /customers/v1/{customer_id}/entities': (request) => {
      const customer = request.customers.find(
        ({ customer_id }) => customer_id === request.pathParams.customer_id,
      );
      return customer ? paged([entityOf(customer)], request, (data) => ({ data })) : notFound();
    },
    'GET /data/v2/accounts': (request) =>
      answerForEntity(request, (accounts) =>
        paged(accounts, request, (page) => ({ data: { accounts: page } })),
      ),
    'GET /data/v2/accounts/{account_id}/balances': (request) =>
      answerForAccount(request, ({ account_id, currency }) => {
        const balances = [{ account_id, amount: 1250.75, currency }];
        return paged(balances, request, (page) => ({ data: { balances: page } }));
      }),
    'GET /data/v2/accounts/{account_id}/transactions': (request) =>
      answerForAccount(request, ({ account_id, currency }) => {
        const all = Array.from({ length: transactions }, (_, index) => ({
          transaction_id: `transaction-${index + 1}-${account_id}`,
          account_id,
          amount: -(index + 1),
          currency,
          timestamp: new Date(Date.UTC(2026, 0, 1) - index * 3_600_000).toISOString(),
        }));
        const result = () => paged(all, request, (page) => ({ data: { transactions: page } }));
        const collection = collections.get(account_id) ?? { results_id: randomUUID(), pendingReads, result };
        collections.set(account_id, collection);
        return readCollection(collection, result);
      }),
    'GET /data/v2/results/{results_id}': ({ pathParams }) => {
      const collection = [...collections.values()].find(
        ({ results_id }) => results_id === pathParams.results_id,
      );
      return collection ? readCollection(collection) : notFound();
    },
    'POST /payments/v1/intents': ({ headers, data }) => {
      const key = headers['idempotency-key'];
      if (!key) return invalid('The header idempotency-key is missing');
      if (!isJsonObject(data)) return invalid('The body must be a JSON object');
      const json = { ...data, payment_intent_id: randomUUID(), status: 'AWAITING_AUTHORIZATION' };
      const intent = intents.get(key) ?? { request: data, json };
      if (!isDeepStrictEqual(intent.request, data))
        return invalid('Another payment has this idempotency-key');
      intents.set(key, intent);
      return { status: 201, json: intent.json };
    },
    'GET /payments/v1/intents': (request) =>
      paged([...intents.values()], request, (page) => ({ content: page.map(({ json }) => json) })),
    'GET /payments/v1/intents/{payment_intent_id}': ({ pathParams: { payment_intent_id } }) =>
      answerIfFound(
        [...intents.values()].find(({ json }) => json.payment_intent_id === payment_intent_id)?.json,
      ),
  };
}

type Account = ReturnType<typeof accountsOf>[number];

const entityOf = ({ customer_id }: { customer_id: string }) => ({
  entity_id: `entity-${customer_id}`,
  customer_id,
  bank_identifier: 'ALPHA_BANK',
});

const accountsOf = (entity_id: string) =>
  ['current', 'savings'].map((type) => ({ account_id: `${type}-${entity_id}`, type, currency: 'AED' }));

/** Answers with the accounts of the entity in the query, or 404. */
function answerForEntity(
  { params: { entity_id }, customers }: SimulatedRequest,
  answer: (accounts: Account[]) => SimulatorAnswer,
): SimulatorAnswer {
  if (typeof entity_id !== 'string') return invalid('entity_id is missing');
  const isKnown = customers.some((customer) => entityOf(customer).entity_id === entity_id);
  return isKnown ? answer(accountsOf(entity_id)) : notFound();
}

/** Answers with the account in the path if it belongs to the entity in the query, or 404. */
function answerForAccount(
  request: SimulatedRequest,
  answer: (account: Account) => SimulatorAnswer,
): SimulatorAnswer {
  return answerForEntity(request, (accounts) => {
    const account = accounts.find(({ account_id }) => account_id === request.pathParams.account_id);
    return account ? answer(account) : notFound();
  });
}

/**
 * Answers with one page of a list.
 *
 * @param place puts the page where the body of this path has it
 */
function paged<T>(
  list: readonly T[],
  { params }: SimulatedRequest,
  place: (page: T[]) => object,
): SimulatorAnswer {
  const number = Number(params.page ?? params.page_number ?? 0);
  const size = Number(params.size ?? params.page_size ?? 50);
  if (!(Number.isInteger(number) && number >= 0 && Number.isInteger(size) && size > 0))
    return invalid('page must be a whole number from 0, and size one from 1');
  const page = { number, size, total_elements: list.length, total_pages: Math.ceil(list.length / size) };
  return { json: { status: 'OK', ...place(list.slice(number * size, (number + 1) * size)), page } };
}

const answerIfFound = (json: unknown): SimulatorAnswer => (json === undefined ? notFound() : { json });
const notFound = () => failure(404, 'NOT_FOUND', 'There is nothing with this id');
const invalid = (message: string) => failure(400, 'INVALID_PARAMETERS', message);
