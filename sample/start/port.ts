import { type ConfigService } from '@nestjs/config';

const DEFAULT_PORT = 3000;

/** PORT, also from .env. Throws where it is no port, because `listen` takes any other text as the path of a socket. */
export function readPort(config: ConfigService): number {
  const text = config.get<string>('PORT')?.trim() || String(DEFAULT_PORT);
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new RangeError(`PORT must be a number from 0 to 65535, and is '${text}'.`);
}
