import { afterAll, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { EventEmitter, once } from 'node:events';
import { BanksService, ServiceModule, type ServiceCallEvent } from 'nestjs-service';
import { ServiceSimulator } from 'nestjs-service/testing';
import { CollectingLogger } from '../helpers/secret-scan.js';
import { readDocument, writeSnippets } from '../helpers/readme.js';

// Those that need other packages are run by test/consumers.
const OWN = new Set(['caller-gone.ts']);

describe('docs/recipes.md', () => {
  const written = readDocument('docs/recipes.md').then(({ fences }) =>
    writeSnippets(
      fences.filter(({ file = '' }) => OWN.has(file)),
      { name: 'recipes' },
    ),
  );
  afterAll(async () => (await written).remove());

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('ends a call whose caller has gone, on %s', async (_, adapter) => {
    const { CallerGone } = (await import((await written).path('caller-gone.ts'))) as {
      CallerGone: () => ParameterDecorator;
    };
    @Controller('search')
    class SearchController {
      constructor(private readonly banks: BanksService) {}
      @Get()
      list(@CallerGone() signal: AbortSignal) {
        return this.banks.list({ signal });
      }
    }
    const events = new EventEmitter();
    const onCall = (event: ServiceCallEvent) => void events.emit('call', event);
    const simulator = await ServiceSimulator.start();
    const options = { ...simulator.moduleOptions(), http: { onCall } };
    const module = await Test.createTestingModule({
      imports: [ServiceModule.forRoot(options)],
      controllers: [SearchController],
    }).compile();
    const logger = new CollectingLogger();
    const app = module.createNestApplication(adapter(), { logger });
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/search`;
    expect(await (await fetch(url)).json()).toHaveLength(10);

    simulator.fail({ when: () => events.emit('arrival'), fault: 'hang' });
    const caller = new AbortController();
    const [arrival, ended] = [once(events, 'arrival'), once(events, 'call')];
    const asked = fetch(url, { signal: caller.signal });
    await arrival;
    caller.abort();
    await expect(asked).rejects.toThrow();
    expect(await ended).toMatchObject([{ path: '/banks/v1', error: 'aborted' }]);
    // fetch has opened one in advance, which is not idle before its first request.
    app.getHttpServer().closeAllConnections();
    await app.close();
    expect(logger.lines.filter((line) => /error|gone/i.test(JSON.stringify(line)))).toEqual([]);
    await simulator.stop();
  });
});
