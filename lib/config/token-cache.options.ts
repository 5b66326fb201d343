import { Option } from './option.js';
import { WholeNumber } from './rules.js';

export class ServiceTokenCacheOptions {
  /** Customer tokens kept, least recently used out first. Default 10,000. SERVICE_TOKEN_CACHE_MAX_ENTRIES */
  @Option('TOKEN_CACHE_MAX_ENTRIES', 'integer')
  @WholeNumber(1, 10_000_000, 'entries')
  maxEntries?: number | undefined = 10_000;
}
