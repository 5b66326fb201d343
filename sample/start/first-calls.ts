import {
  ServiceError,
  type BanksService,
  type ConnectParameters,
  type CustomersService,
  type LinkSdkService,
} from 'nestjs-service';

/** Shorter than the default, so that a service that does not answer is reported soon. */
const TIMEOUT_MS = 10_000;
const APP_USER_ID = 'sample-user';

export interface FirstCallServices {
  banks: BanksService;
  customers: CustomersService;
  sdk: LinkSdkService;
}

/**
 * Makes the first calls and reports each result. With the simulator it makes one call of each kind. With a real service it
 * lists the banks only, because every start would create another customer.
 */
export async function makeFirstCalls(
  { banks, customers, sdk }: FirstCallServices,
  isSimulated: boolean,
  tell: (call: string, outcome: string) => void,
): Promise<void> {
  const attempt = async (call: string, run: () => Promise<string>): Promise<void> => {
    const started = performance.now();
    const outcome = await run().then((summary) => `ok: ${summary}`, describeError);
    tell(call, `${outcome} (${Math.round(performance.now() - started)} ms)`);
  };

  await attempt('banks.list', async () => describeBanks(await banks.list({ timeout: TIMEOUT_MS })));
  if (!isSimulated) {
    tell('customers.create', 'not called: it would create a customer; the lines below do');
    return;
  }
  let customerId = 'none';
  await attempt('customers.create', async () => {
    const customer = await customers.create({ app_user_id: APP_USER_ID }, { timeout: TIMEOUT_MS });
    customerId = customer?.customer_id ?? customerId;
    return `customer ${customerId}`;
  });
  await attempt('sdk.connectParameters', async () =>
    describeParameters(await sdk.connectParameters({ customer_id: customerId, permissions: ['identity'] })),
  );
}

function describeError(error: unknown): string {
  return error instanceof ServiceError
    ? `failed: ${error.code}: ${error.message}`
    : `failed: ${String(error)}`;
}

function describeBanks(body: unknown): string {
  return Array.isArray(body) ? `${body.length} banks` : 'answered, not with a list';
}

/** Prints no token. */
function describeParameters(parameters: ConnectParameters): string {
  const shown = Object.entries(parameters).map(([name, value]: [string, unknown]) =>
    name.endsWith('_token')
      ? `${name} <token of ${String(value).length} characters>`
      : `${name} ${String(value)}`,
  );
  return shown.join(', ');
}
