import { describe, expect, it, jest } from '@jest/globals';
import { type ArgumentsHost } from '@nestjs/common';
import { ServiceRequestError } from '../../../lib/errors/index.js';
import { ServiceExceptionFilter } from '../../../lib/http/service-exception.filter.js';

const error = new ServiceRequestError([{ property: 'path', message: 'must be a string' }]);
const answer = {
  status: 'error',
  message: error.message,
  code: 'invalid_request',
  statusCode: 400,
  cause: { pattern: 'ask' },
};

const onGateway = (client: unknown): ArgumentsHost =>
  ({
    getType: () => 'ws',
    switchToWs: () => ({ getClient: () => client, getPattern: () => 'ask' }),
  }) as unknown as ArgumentsHost;

describe('the exception filter on a WebSocket gateway', () => {
  it.each([
    ['open', 1, [[JSON.stringify({ event: 'exception', data: answer })]]],
    ['closing', 2, []],
    ['closed', 3, []],
  ])('writes to a WebSocket that is open, and to no other: %s', (_, readyState, sent) => {
    const client = { readyState, send: jest.fn(), emit: jest.fn() };
    new ServiceExceptionFilter().catch(error, onGateway(client));
    expect(client.send.mock.calls).toEqual(sent);
    expect(client.emit).not.toHaveBeenCalled();
  });

  it('emits the event to a client of socket.io, and takes a client that is gone', () => {
    const client = { emit: jest.fn() };
    new ServiceExceptionFilter().catch(error, onGateway(client));
    expect(client.emit.mock.calls).toEqual([['exception', answer]]);
    expect(() => new ServiceExceptionFilter().catch(error, onGateway(undefined))).not.toThrow();
  });
});
