import { expect, it } from '@jest/globals';
import { type Service } from '../../../lib/engine/create-service.js';
import { ServiceClients } from '../../../lib/module/service-clients.js';

it('a client that does not start is ended once, and not kept until the application ends', async () => {
  const ended: string[] = [];
  const service = {
    start: () => Promise.reject(new Error('no')),
    beginShutdown: () => void ended.push('beginShutdown'),
    close: async () => void ended.push('close'),
  } as unknown as Service;
  const clients = new ServiceClients(async () => service);
  await expect(clients.create({ name: 'acme' })).rejects.toThrow('no');
  clients.beforeApplicationShutdown();
  await clients.onApplicationShutdown();
  expect(ended).toEqual(['close']);
});
