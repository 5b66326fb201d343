import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { type INestApplication } from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { type ServiceSimulator } from 'nestjs-service/testing';
import { PageModule } from '../../sample/page/page.module.js';
import { servePage } from '../../sample/page/serve-page.js';
import { ShownCalls } from '../../sample/page/shown-calls.js';
import { StatusController } from '../../sample/page/status.controller.js';
import { MODES } from '../../sample/playground/modes.js';
import { Playground } from '../../sample/playground/playground.js';
import { PlaygroundModule } from '../../sample/playground/playground.module.js';
import { Simulators } from '../../sample/playground/simulators.js';
import { acceptLocalOnly } from '../../sample/start/local-only.js';
import { inSoak, onlyInSoak } from '../helpers/in-soak.js';
import { findProgram, itWith, requireProgram } from '../helpers/optional-programs.js';
import { until } from '../helpers/until.js';

const peer = findProgram('chromium');
const browserIt = itWith(peer, 'the page of the sample in a browser');
/** Browser tests are slow: `npm test` runs only the main flow, and the soak tests run the rest. */
const soakBrowserIt = onlyInSoak(browserIt);
const AXE = readFileSync(
  createRequire(`${process.cwd()}/package.json`).resolve('axe-core/axe.min.js'),
  'utf8',
);

const CONNECTED = /^Connected\.$/;

describe('the page of the sample', () => {
  let app: INestApplication;
  let url: string;
  /** The simulator of the application that has OAuth enabled. */
  let simulator: ServiceSimulator;
  let simulators: Simulators;
  let browser: Browser | undefined;
  let context: BrowserContext;
  const environment = { ...process.env };

  beforeAll(async () => {
    const testing = await Test.createTestingModule({
      imports: [PageModule.forRoot(await PlaygroundModule.start())],
    })
      .setLogger(false as never)
      .compile();
    app = testing.createNestApplication<NestExpressApplication>({ forceCloseConnections: true });
    app.useLogger(false);
    acceptLocalOnly(app as NestExpressApplication);
    servePage(app as NestExpressApplication);
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    simulators = app.get(Simulators, { strict: false });
    simulator = simulators.withOAuth;
  }, 60_000);
  afterEach(async () => {
    simulator.clearFaults();
    await context?.close();
  });
  afterAll(async () => {
    await browser?.close();
    await app.close();
    process.env = environment;
  });

  describe('requests of another website in the same browser', () => {
    const form = 'app_user_id=of-an-attacker&mode=sandbox-mtls&name=rotatedSecret';

    /** Uses node:http, because fetch sets the Host header itself. */
    async function send(method: string, path: string, headers: Record<string, string>): Promise<number> {
      const sent = request(url + path, { method, headers });
      sent.end(method === 'POST' ? form : undefined);
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      answer.resume();
      return answer.statusCode ?? 0;
    }

    it.each(['/page/mode', '/page/faults', '/page/customers'])(
      'a form that another website posts to %s is rejected with 403',
      async (path) => {
        const headers = { 'content-type': 'application/x-www-form-urlencoded' };
        for (const origin of ['https://attacker.example', 'null', url.replace('http:', 'https:')])
          expect(await send('POST', path, { ...headers, origin })).toBe(403);
      },
    );

    it('a request under the host name of another website is rejected with 403', async () => {
      const { port } = new URL(url);
      for (const path of ['/', '/banks', '/page/events']) {
        for (const host of [
          `attacker.example:${port}`,
          `127.0.0.1.attacker.example`,
          `127.0.0.1@a:${port}`,
        ]) {
          expect(await send('GET', path, { host })).toBe(403);
        }
      }
      expect(await send('GET', '/banks', { host: `localhost:${port}` })).toBe(200);
    });
  });

  async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    browser ??= await chromium.launch({ executablePath: requireProgram(peer), args: ['--no-sandbox'] });
    context = await browser.newContext(options);
    context.setDefaultTimeout(15_000);
    const page = await context.newPage();
    app.get(Playground, { strict: false }).use(MODES[0].name);
    await page.goto(url);
    await page.getByRole('option', { name: 'Juniper Bank' }).waitFor({ state: 'attached' });
    return page;
  }

  const outcome = (page: Page) => page.getByRole('status');
  const status = (page: Page) => page.getByRole('region', { name: 'What happens' });
  const connect = (page: Page) => page.getByRole('button', { name: 'Connect' });
  /** The shown calls, the newest first. */
  const calls = (page: Page) => page.getByRole('list', { name: /^Last calls/ }).locator('> li');
  const dialog = (page: Page) => page.getByRole('dialog', { name: 'Connect your bank' });

  async function createCustomer(
    page: Page,
    userId: string = randomUUID(),
    service = simulator,
  ): Promise<string> {
    await page.getByLabel('Your user id').fill(userId);
    await page.getByRole('button', { name: 'Create customer' }).click();
    await page.getByText(/^Customer [\da-f-]+ belongs to your visit/).waitFor();
    const created = service.customers.at(-1);
    expect(created).toMatchObject({ app_user_id: userId });
    return created?.customer_id ?? '';
  }

  async function expectOutcome(page: Page, expected: string | RegExp): Promise<void> {
    await outcome(page).filter({ hasText: expected }).waitFor();
  }

  async function useMode(page: Page, name: string): Promise<void> {
    const listed = page.waitForResponse('**/page/banks');
    await page.getByRole('combobox', { name: 'Choose a mode' }).selectOption(name);
    await listed;
  }

  /** Waits for the state, which may be about to change. */
  const expectDisabled = (button: Locator, disabled: boolean) =>
    button.and(button.page().locator(disabled ? ':disabled' : ':enabled')).waitFor();

  async function shownParameters(page: Page): Promise<Record<string, string>> {
    const [names, values] = [page.locator('#parameters dt'), page.locator('#parameters dd')];
    const texts = await values.allTextContents();
    return Object.fromEntries(
      (await names.allTextContents()).map((name, index) => [name, texts[index] ?? '']),
    );
  }

  /** Changes what the server answers to the page's request for a session. */
  async function tamper(page: Page, changes: Record<string, unknown>): Promise<void> {
    await page.route('**/page/link-session', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), ...changes } });
    });
  }

  browserIt('the page connects a customer to any bank and to a chosen bank', async () => {
    const page = await open();
    const customerId = await createCustomer(page, 'user 42');
    // The service accepts each user id only once, so the sample finds the existing customer.
    expect(await createCustomer(page, 'user 42')).toBe(customerId);
    await connect(page).click();
    await dialog(page).getByText('Any bank').waitFor();
    expect(await page.locator('#outcome').textContent()).toBe('');
    await dialog(page).getByRole('button', { name: 'Allow' }).click();
    await expectOutcome(page, CONNECTED);

    await page.getByLabel('Bank', { exact: true }).selectOption('Delta Bank');
    await page.getByRole('group', { name: 'Permissions' }).getByLabel('Balances').check();
    const parameters = page.waitForResponse('**/page/link-session');
    await connect(page).click();
    await dialog(page).getByText('DELTA_BANK').waitFor();
    expect(await dialog(page).getByRole('listitem').allTextContents()).toEqual([
      'identity',
      'accounts',
      'balances',
    ]);
    await dialog(page).getByRole('button', { name: 'Allow' }).click();
    await expectOutcome(page, CONNECTED);
    const answer = await parameters;
    expect(answer.headers()['cache-control']).toBe('no-store');
    expect(await answer.json()).toEqual({
      app_token: expect.any(String),
      access_token: expect.any(String),
      customer_id: customerId,
      permissions: ['identity', 'accounts', 'balances'],
      bank_identifier: 'DELTA_BANK',
    });
    await expectOutcome(page, CONNECTED);
    expect(await shownParameters(page)).toEqual({
      app_token: expect.stringContaining('the same for all customers'),
      access_token: expect.stringMatching(/^\d+ characters, for this customer, until [\d:]+/),
      customer_id: customerId,
      permissions: 'identity, accounts, balances',
      bank_identifier: 'DELTA_BANK',
    });
    const requested = calls(page).filter({ hasText: `scope: customer.${customerId}` });
    await requested.getByText(`client_secret: ${simulator.clientSecret.length} characters`).waitFor();
    const { access_token } = (await answer.json()) as { access_token: string };
    expectNothingOf(access_token, await page.content());
  });

  soakBrowserIt(
    'a mode without OAuth connects with the app token alone, which the service refuses once OAuth is enabled',
    async () => {
      const page = await open();
      for (const [mode, service, expected] of [
        ['sandbox-without-oauth', simulators.withoutOAuth, CONNECTED],
        ['sandbox-oauth-missing', simulators.withOAuth, /^OAuth is enabled for this application/],
      ] as const) {
        await useMode(page, mode);
        const customer_id = await createCustomer(page, undefined, service);
        await connect(page).click();
        if (expected === CONNECTED) await dialog(page).getByRole('button', { name: 'Allow' }).click();
        await expectOutcome(page, expected);
        expect(await shownParameters(page)).toEqual({
          app_token: '36 characters, the same for all customers, without an end',
          customer_id,
          sandbox: 'true',
          permissions: 'identity, accounts',
        });
        expectNothingOf(service.appToken, await page.content());
      }
    },
  );

  soakBrowserIt('the page shows the credentials that arrived with each call', async () => {
    const page = await open();
    const subject = 'client certificate: CN=application, O=Simulated Application';
    const appToken = 'service-app-token: 36 characters';
    for (const [mode, credentials] of [
      ['production-mtls', [subject, appToken]],
      ['production-oauth', [expect.stringMatching(/^Authorization: Bearer \d{3} characters$/)]],
      ['sandbox-app-token', [appToken]],
    ] as const) {
      await useMode(page, mode);
      const { title } = MODES.find(({ name }) => name === mode) ?? {};
      const customerId = await createCustomer(page);
      await connect(page).click();
      await dialog(page).getByRole('button', { name: 'Allow' }).click();
      await expectOutcome(page, CONNECTED);
      const [token, customer] = [calls(page).nth(0), calls(page).nth(1)];
      await token.getByText(title ?? '').waitFor();
      expect(await token.locator('strong').allTextContents()).toEqual(['POST /oauth2/token', '200']);
      expect(await token.getByRole('listitem').allTextContents()).toEqual([
        `client_secret: ${simulator.clientSecret.length} characters`,
        `scope: customer.${customerId}`,
      ]);
      expect(await customer.locator('strong').allTextContents()).toEqual(['POST /customers/v1', '201']);
      expect(await customer.locator('span').textContent()).toMatch(
        new RegExp(`^${title}: 1 attempt, \\d+ ms$`),
      );
      expect(await customer.getByRole('listitem').allTextContents()).toEqual(credentials);
    }
    const scopes = calls(page)
      .filter({ hasText: 'Production, OAuth' })
      .getByText(/^scope: /);
    expect(await scopes.allTextContents()).toContain('scope: api');
  });

  soakBrowserIt(
    'the page disables the faults that a mode cannot have, and clears the messages of the previous mode',
    async () => {
      const page = await open();
      await useMode(page, 'sandbox-app-token');
      for (const name of ['Revoked tokens', 'Rotated secret', 'Replaced client certificate']) {
        await expectDisabled(page.getByRole('button', { name }), true);
        await page.getByText(new RegExp(`${name}[^:]*: only with `)).waitFor();
      }
      await page.getByRole('button', { name: 'Reset' }).click();
      await page.getByText(/^Reset: recovered/).waitFor();
      await createCustomer(page);
      await expectDisabled(connect(page), false);
      await useMode(page, 'production-oauth');
      await expectDisabled(connect(page), true);
      await expectDisabled(page.getByRole('button', { name: 'Rotated secret' }), false);
      await expectDisabled(page.getByRole('button', { name: 'Replaced client certificate' }), true);
      await outcome(page).filter({ hasText: /^$/ }).waitFor({ state: 'attached' });
      expect(await page.getByText(/recovered/).count()).toBe(0);
    },
  );

  inSoak(() => {
    browserIt('the page says "Cancelled." after the Cancel button and after the Escape key', async () => {
      const page = await open();
      await createCustomer(page);
      for (const cancel of [
        () => dialog(page).getByRole('button', { name: 'Cancel' }).click(),
        () => page.keyboard.press('Escape'),
      ]) {
        await connect(page).click();
        await dialog(page).waitFor();
        await cancel();
        await expectOutcome(page, 'Cancelled.');
      }
    });
  });

  soakBrowserIt('the page shows why a session is refused', async () => {
    const page = await open();
    await createCustomer(page);
    await tamper(page, { customer_id: 'c-of-somebody-else' });
    await connect(page).click();
    await expectOutcome(page, /is for another customer/);
    expect(await dialog(page).count()).toBe(0);
  });

  soakBrowserIt('the Connect button is disabled until a customer is created', async () => {
    const page = await open();
    await expectDisabled(connect(page), true);
    await page.getByText('create one first').waitFor();
    await createCustomer(page);
    await expectDisabled(connect(page), false);
    await page.getByText('create one first').waitFor({ state: 'hidden' });
  });

  inSoak(() => {
    browserIt('the page shows what is wrong with a request, and that the token endpoint fails', async () => {
      const page = await open();
      await createCustomer(page);
      for (const box of await page.getByRole('checkbox').all()) await box.uncheck();
      await connect(page).click();
      await expectOutcome(page, /^The permissions should not be empty\.$/);
      simulator.fail({ face: 'token', fault: { status: 503 }, times: 20 });
      const other = await open();
      await createCustomer(other);
      await connect(other).click();
      await outcome(other)
        .filter({ hasText: /service|token/i })
        .waitFor();
    });
  });

  soakBrowserIt('the page can be used with the keyboard alone', async () => {
    const page = await open();
    const focused = () =>
      page.evaluate(() => {
        // This file is compiled without the types of a browser.
        const { activeElement } = (globalThis as unknown as { document: { activeElement: HTMLLike } })
          .document;
        return activeElement.shadowRoot?.activeElement?.textContent ?? activeElement.id ?? '';
      });
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('mode');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('user-id');
    await page.keyboard.press('Enter');
    await page.getByText('belongs to your visit').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('bank');
    await page.keyboard.press('ArrowDown');
    for (let boxes = 0; boxes < 4; boxes += 1) {
      await page.keyboard.press('Tab');
      if (boxes === 2) await page.keyboard.press('Space');
    }
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await dialog(page).getByText('ALPHA_BANK').waitFor();
    await dialog(page).getByText('balances').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expectOutcome(page, CONNECTED);
  });

  inSoak(() => {
    browserIt.each([
      [390, 'dark'],
      [820, 'light'],
      [1280, 'dark'],
    ] as const)(
      'the page has no accessibility violation and no horizontal overflow at %i px in the %s color scheme',
      async (width, colorScheme) => {
        const page = await open({ viewport: { width, height: 844 }, colorScheme });
        const expectNone = async () => {
          const found = await page.evaluate<AxeResult[]>(
            `(async () => { ${AXE}; return (await axe.run()).violations; })()`,
          );
          expect(found.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
        };
        await createCustomer(page);
        await tamper(page, { customer_id: 'c-of-somebody-else' });
        await connect(page).click();
        await expectOutcome(page, /another customer/);
        await page.getByRole('button', { name: '503, twice' }).click();
        await page.getByText(/recovered/).waitFor();
        await expectNone();
        await page.unroute('**/page/link-session');
        await connect(page).click();
        await dialog(page).waitFor();
        await expectNone();
        await dialog(page).getByRole('button', { name: 'Allow' }).click();
        await expectOutcome(page, CONNECTED);
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect(overflow).toBeLessThanOrEqual(0);
      },
    );
  });

  inSoak(() => {
    browserIt.each(MODES.filter(({ oauth }) => oauth === undefined))(
      'the page shows the facts of the mode $title and connects a customer in it',
      async ({ name, environment, authentication, address }) => {
        const page = await open();
        await useMode(page, name);
        const facts = status(page);
        await facts.getByText(simulator.urls[address]).waitFor();
        await facts.getByText(environment, { exact: true }).waitFor();
        await facts.getByText(authentication, { exact: true }).waitFor();
        await facts
          .getByText(authentication === 'oauth' ? /valid, \d+ s old, \d+ s left/ : 'not used in this mode')
          .waitFor();
        if (authentication === 'mtls') await facts.getByText(/CN=.*: 36\d days left/).waitFor();
        await createCustomer(page);
        await connect(page).click();
        await dialog(page).getByRole('button', { name: 'Allow' }).click();
        await expectOutcome(page, CONNECTED);
      },
    );
  });

  soakBrowserIt('the page shows that a call recovered from two 503 responses', async () => {
    const page = await open();
    await page.getByRole('button', { name: '503, twice' }).click();
    await page.getByText('503, twice: recovered').waitFor();
    expect(await calls(page).first().locator('strong').allTextContents()).toEqual(['GET /banks/v1', '200']);
    await calls(page).first().getByText('3 attempts, ').waitFor();
  });

  inSoak(() => {
    browserIt(
      'the page shows the error of an expired server certificate, and the recovery after a reset',
      async () => {
        const page = await open();
        await page.getByRole('button', { name: 'Expired server certificate' }).click();
        const shown = await page.getByText(/^Expired server certificate.*: /).textContent();
        expect(shown).toMatch(/: The service cannot be reached at the moment\. Compare this machine's clock/);
        await calls(page).first().getByText('connection_tls').waitFor();
        await calls(page).first().getByText('nothing arrived at the simulator').waitFor();
        // The end of this fault also closes all connections. Wait for it here, or it disturbs the next test.
        await until(async () => (await fetch(`${url}/page/banks`)).ok);
        await page.getByRole('button', { name: 'Reset' }).click();
        await page.getByText(/^Reset: recovered/).waitFor();
      },
    );
  });

  soakBrowserIt(
    'the page loads nothing from other origins and violates no rule of its content security policy',
    async () => {
      browser ??= await chromium.launch({ executablePath: requireProgram(peer), args: ['--no-sandbox'] });
      context = await browser.newContext();
      const page = await context.newPage();
      const requested: string[] = [];
      const complaints: string[] = [];
      page.on('request', (request) => requested.push(new URL(request.url()).origin));
      page.on('console', (message) => complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      const response = await page.goto(url);
      expect(response?.headers()['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      );
      await createCustomer(page);
      await connect(page).click();
      await dialog(page).getByRole('button', { name: 'Allow' }).click();
      await expectOutcome(page, CONNECTED);
      expect(new Set(requested)).toEqual(new Set([url]));
      expect(complaints).toEqual([]);
    },
  );

  soakBrowserIt('no secret appears in the traffic, the storage or the DOM of the page', async () => {
    const page = await open();
    const seen: string[] = [];
    page.on('request', (request) => seen.push(request.url(), request.postData() ?? ''));
    page.on('response', (response) => {
      if (!response.url().endsWith('/events'))
        void response.text().then(
          (text) => seen.push(text),
          () => undefined,
        );
    });
    await page.evaluate(() => {
      const page = globalThis as unknown as { EventSource: new (url: string) => EventTarget; seen: string[] };
      page.seen = [];
      const events = new page.EventSource('/page/events');
      for (const type of ['choices', 'status', 'call']) {
        events.addEventListener(type, (event) => page.seen.push((event as unknown as { data: string }).data));
      }
    });
    simulator.clearRequests();
    for (const { name } of MODES) await useMode(page, name);
    await useMode(page, 'production-oauth');
    await page.getByRole('button', { name: 'Revoked tokens' }).click();
    await page.getByText(/recovered/).waitFor();
    await createCustomer(page);
    await connect(page).click();
    await dialog(page).waitFor();
    seen.push(await page.content());
    await dialog(page).getByRole('button', { name: 'Allow' }).click();
    await expectOutcome(page, CONNECTED);
    seen.push(
      await page.content(),
      JSON.stringify(
        await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, document.cookie, globalThis.seen]'),
      ),
      JSON.stringify(await context.cookies()),
    );

    const apiTokens = simulator.requests.flatMap(({ headers }) => headers.authorization?.split(' ')[1] ?? []);
    expect(new Set(apiTokens).size).toBeGreaterThanOrEqual(2);
    const key = simulator.application.privateKey.split('\n')[1] ?? '';
    const text = seen.join('\n');
    expect(text).toContain('access_token');
    const shown = JSON.stringify(await page.evaluate('globalThis.seen')) + (await page.content());
    for (const secret of [simulator.clientSecret, key, 'PRIVATE KEY', ...apiTokens]) {
      expectNothingOf(secret, shown);
      expect(text).not.toContain(secret);
      expect(text).not.toContain(encodeURIComponent(secret));
    }
  });

  describe('routes behind the page', () => {
    const post = (path: string, body: object, cookie = '') =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: url, cookie },
        body: JSON.stringify(body),
      });
    const use = (mode: string) => app.get(Playground, { strict: false }).use(mode);

    it('the event stream of the page reports a new mode at once', () => {
      const shown: unknown[] = [];
      const following = app
        .get(StatusController, { strict: false })
        .events()
        .subscribe(({ type, data }) => {
          if (type === 'status') shown.push((data as { environment: string }).environment);
        });
      use('sandbox-oauth');
      use('production-mtls');
      following.unsubscribe();
      expect(shown).toEqual(['sandbox', 'production']);
    });

    it.each([
      ['production-mtls', 'unavailable', 3],
      ['production-mtls', 'reset', 2],
      ['production-mtls', 'timeout', 2],
      ['production-mtls', 'replacedCertificate', 2],
      ['production-oauth', 'revokedToken', 2],
      ['production-oauth', 'rotatedSecret', 2],
    ] as const)('a call in the mode %s recovers from the fault %s', async (mode, name, attempts) => {
      use(mode);
      const banks = async () => (await fetch(`${url}/page/banks`)).status;
      expect(await banks()).toBe(200);
      expect((await post('/page/faults', { name })).status).toBe(204);
      const shown: object[] = [];
      const following = app.get(ShownCalls, { strict: false }).subscribe((call) => shown.push(call));
      expect(await banks()).toBe(200);
      following.unsubscribe();
      const calls = shown.filter((call) => 'path' in call && call.path === '/banks/v1');
      expect(calls.at(-1)).toMatchObject({ status: '200', attempts, failed: false });
    });

    const CUSTOMER = 'customer.c-1';
    const token = (options: Parameters<ServiceSimulator['issueToken']>[0]) => async () => ({
      access_token: await simulator.issueToken(options),
    });
    it.each<[string, () => Promise<object>, number, RegExp]>([
      ['a token of the customer is accepted', token({ scope: CUSTOMER }), 201, /identity/],
      [
        'a token of another customer is refused',
        token({ scope: 'customer.c-2' }),
        403,
        /is for another customer/,
      ],
      ['an expired token is refused', token({ scope: CUSTOMER, lifetime: -1 }), 403, /has expired/],
      ['an api token is refused', token({}), 403, /is for the API/],
      [
        'a token of another issuer is refused',
        token({ scope: CUSTOMER, foreign: true }),
        403,
        /access token is not valid/,
      ],
      ['no token is refused', async () => ({}), 403, /access_token is missing/],
      [
        'the app token alone is refused',
        async () => ({ app_token: simulator.appToken }),
        403,
        /OAuth is enabled/,
      ],
    ])('a LinkSDK session with %s', async (_, tokens, status, said) => {
      use(MODES[0].name);
      const parameters = { customer_id: 'c-1', permissions: ['identity'], ...(await tokens()) };
      const answer = await post('/link-sdk/sessions', parameters);
      expect(answer.status).toBe(status);
      expect(await answer.text()).toMatch(said);
    });

    it.each(MODES.map(({ name }) => name))(
      'a returning user gets a session with the same customer id in the mode %s',
      async (mode) => {
        use(mode);
        // An earlier test has replaced the client certificate: a GET makes this mode's module read its files again, a POST does not.
        expect((await fetch(`${url}/page/banks`)).status).toBe(200);
        const app_user_id = randomUUID();
        const ids = [];
        for (let visit = 0; visit < 2; visit += 1) {
          const answer = await post('/page/customers', { app_user_id });
          const { customer_id } = (await answer.json()) as { customer_id: string };
          const [cookie] = answer.headers.getSetCookie();
          const session = await post('/page/link-session', { permissions: ['identity'] }, cookie);
          expect(await session.json()).toMatchObject({ customer_id });
          ids.push(customer_id);
        }
        expect(ids[1]).toBe(ids[0]);
      },
    );

    it("the sample's own routes keep working after the page replaces the secret, the tokens and the certificate", async () => {
      const connects = async () => {
        const created = await post('/customers', { app_user_id: randomUUID() });
        const [cookie] = created.headers.getSetCookie();
        const session = await post('/link-session', { permissions: ['identity'] }, cookie);
        expect([created.status, session.status]).toEqual([201, 201]);
      };
      await connects();
      simulators.rotateSecret();
      simulator.revokeTokens();
      await simulators.replaceCertificate();
      await connects();
      expect(simulator.tokenRequests.map(({ status }) => status).slice(-2)).toEqual([401, 200]);
    });

    it('a visitor gets the session of their own customer whatever the body says, and none without a valid cookie', async () => {
      use('sandbox-app-token');
      const created = await post('/page/customers', { app_user_id: randomUUID() });
      const { customer_id } = (await created.json()) as { customer_id: string };
      const [cookie] = created.headers.getSetCookie();
      const wish = { customer_id: 'c-of-somebody-else', permissions: ['identity'] };
      const own = await post('/page/link-session', wish, cookie);
      expect(await own.json()).toMatchObject({ customer_id });
      const none = await post('/page/link-session', wish, 'sample_session=guessed');
      expect([none.status, await none.json()]).toMatchObject([401, { message: 'Create a customer first.' }]);
    });
  });
});

/** Expects that not even six characters in a row of a secret are in a text. */
function expectNothingOf(secret: string, text: string): void {
  for (let at = 0; at + 6 <= secret.length; at += 1) expect(text).not.toContain(secret.slice(at, at + 6));
}

interface AxeResult {
  id: string;
  nodes: { html: string }[];
}

interface HTMLLike {
  id: string;
  textContent: string;
  shadowRoot?: { activeElement?: HTMLLike };
}
