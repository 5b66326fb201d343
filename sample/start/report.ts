import { type INestApplication } from '@nestjs/common';
import {
  BanksService,
  CustomersService,
  LinkSdkService,
  ServiceAuthService,
  serviceConfig,
  type IdentityStatus,
} from 'nestjs-service';
import { makeFirstCalls } from './first-calls.js';

/** Prints which service the application uses, makes the first calls, and prints curl lines. Never prints a secret. */
export async function printStartReport(app: INestApplication, isSimulated: boolean): Promise<void> {
  const url = await app.getUrl();
  print('', `The sample application listens at ${url}`, '', ...describeTarget(isSimulated));
  print(row('certificate', describeIdentity(app.get(ServiceAuthService).identityStatus)));

  print('', 'First calls:');
  const services = {
    banks: app.get(BanksService),
    customers: app.get(CustomersService),
    sdk: app.get(LinkSdkService),
  };
  await makeFirstCalls(services, isSimulated, (call, outcome) => print(row(call, outcome)));
  print('', ...describeRoutes(url), '');
}

function describeTarget(isSimulated: boolean): string[] {
  const { environment = 'sandbox', authentication, oauth, urls = {} } = serviceConfig();
  const mode = authentication ?? (environment === 'production' ? 'mtls' : 'app-token');
  const customerTokens = mode !== 'oauth' && oauth?.clientId ? ', with OAuth for customer tokens' : '';
  const ofEnvironment = Object.entries(urls).filter(
    ([name]) => name.startsWith('sandbox') === (environment === 'sandbox'),
  );
  return [
    isSimulated
      ? 'It uses simulators on this machine. The routes share one of them with the page, so faults that you inject on the\n' +
        'page affect the routes too. To use the real service: cp .env.example .env'
      : 'It uses the service that the SERVICE_* variables configure:',
    row('environment', environment),
    row('authentication', mode + customerTokens),
    ...ofEnvironment.map(([name, address]) => row(name, String(address))),
  ];
}

function describeIdentity({ certificate, daysLeft }: IdentityStatus): string {
  if (!certificate) return 'none';
  const { subject, validTo } = certificate;
  const name = subject.replaceAll('\n', ', ');
  return `${name}; valid until ${validTo.toISOString().slice(0, 10)} (${daysLeft} days)`;
}

/** The second command uses the cookie of the first, because a LinkSDK session is for the customer of the visitor. */
function describeRoutes(url: string): string[] {
  const post = (path: string, cookies: string, body: unknown) =>
    `  curl ${cookies} sample.cookies ${url}${path} -H 'origin: ${url}' -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    'Try it:',
    `  curl ${url}/banks`,
    post('/customers', '-c', { app_user_id: 'user-42' }),
    post('/link-session', '-b', { permissions: ['identity'] }),
    `  curl ${url}/health`,
    `  and in a browser: ${url}/ and ${url}/docs`,
  ];
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(22)} ${value.replaceAll('\n', '\n'.padEnd(26))}`;
}

function print(...lines: string[]): void {
  console.log(lines.join('\n'));
}
