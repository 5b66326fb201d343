import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ServiceAuthService } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { readDocument, type Snippets, writeSnippets } from '../helpers/readme.js';
import { startModule } from '../helpers/start-module.js';

describe('docs/tokens.md', () => {
  let simulator: ServiceSimulator;
  let snippets: Snippets;

  beforeAll(async () => {
    simulator = await ServiceSimulator.start();
    const { fences } = await readDocument('docs/tokens.md');
    snippets = await writeSnippets(fences, { name: 'tokens' });
  });
  afterAll(async () => {
    await simulator.stop();
    await snippets.remove();
  });

  it('has another client that uses the identity and the tokens', async () => {
    const { statusOf } = (await import(snippets.path('other-client.ts'))) as {
      statusOf(url: string, auth: ServiceAuthService): Promise<number>;
    };
    const { module, auth } = await startModule(simulator.moduleOptions({ environment: 'production' }));
    expect(await statusOf(`${simulator.urls.baseUrl}/banks/v1`, auth)).toBe(200);
    await module.close();
  });
});
