export { type IoredisClient, type NodeRedisClient } from './redis-token-store.js';
export { RedisTokenStore, type RedisTokenStoreOptions } from './redis-token-store.js';
