import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ServiceModule } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';

describe('docs/typed-answers.md', () => {
  let simulator: ServiceSimulator;
  let snippets: Snippets;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    const { fences } = await readDocument('docs/typed-answers.md');
    snippets = await writeSnippets(fences, { name: 'typed-answers' });
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
  });

  it('has answers that are checked and typed', async () => {
    const { BankNames } = (await import(snippets.path('bank-names.ts'))) as {
      BankNames: Type<{ list(): Promise<string[]> }>;
    };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'oauth' }))],
      providers: [BankNames],
    }).compile();
    expect(await module.get(BankNames).list()).toContain('Alpha Bank');
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json: [{ name: 'Alpha Bank' }] } });
    await expect(module.get(BankNames).list()).rejects.toMatchObject({
      code: 'invalid_response',
      message: expect.stringContaining('[0].bank_identifier'),
    });
    await module.close();
  });

  it('has an answer with its headers', async () => {
    const { BankPage } = (await import(snippets.path('bank-page.ts'))) as {
      BankPage: Type<{ first(): Promise<object> }>;
    };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(simulator.moduleOptions({ authentication: 'oauth' }))],
      providers: [BankPage],
    }).compile();
    const headers = { 'X-Total-Count': '40', 'X-Correlation-Id': 'c-1' };
    simulator.fail({ path: '/banks/v1', fault: { status: 200, json: [{ name: 'Alpha Bank' }], headers } });
    const page = await module.get(BankPage).first();
    expect(page).toEqual({ names: ['Alpha Bank'], total: 40, correlationId: 'c-1' });
    expect(simulator.apiRequests.at(-1)?.path).toBe('/banks/v1?page=1');
    expect(await module.get(BankPage).first()).toMatchObject({ total: 10 });
    await module.close();
  });
});
