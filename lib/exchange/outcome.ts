import { ExchangeFault, type ExchangeResponse } from './exchange.types.js';

/** What an exchange brought: exactly one of the two. */
export type Outcome =
  { response: ExchangeResponse; fault?: undefined } | { fault: ExchangeFault; response?: undefined };

/** Rejects only with what is no {@link ExchangeFault}: a caller's own abort. */
export async function outcomeOf(exchanged: Promise<ExchangeResponse>): Promise<Outcome> {
  try {
    return { response: await exchanged };
  } catch (error) {
    if (error instanceof ExchangeFault) return { fault: error };
    throw error;
  }
}
