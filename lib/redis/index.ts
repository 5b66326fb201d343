export { type IoredisClient, type NodeRedisClient } from './redis-client.js';
export { RedisTokenStore, type RedisTokenStoreOptions } from './redis-token-store.js';
