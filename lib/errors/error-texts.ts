import { type ServiceApiError } from './api.error.js';
import { type ServiceError, type Explanation, type Remedy } from './service.error.js';

/** How messages name an option, with the variable that sets it: `oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE)`. */
export type DescribeOption = (option: string) => string;

/** An address, for hints. */
export interface AddressOption {
  /** The option that it is set by: `urls.baseUrl`. */
  option: string;
  describeOption: DescribeOption;
}

/**
 * Fills in the texts of a table. Values are in braces; in a hint also paths of options, and `{address}` and `{api}` for the
 * options with the addresses. The first mention of an option names its variable too. These options become those of the
 * error, in the order of the hint, unless the row has its own.
 */
export function explain(
  message: string,
  { hint, options }: Remedy,
  values: Readonly<Record<string, string | undefined>>,
  { option: address, apiOption, describeOption }: AddressOption & { apiOption?: string },
): Explanation {
  const fill = (text: string, nameOf: (key: string) => string): string =>
    text.replace(/\{([\w.]+)\}/g, (_, key: string) => (key in values ? (values[key] ?? '') : nameOf(key)));
  const told = { message: fill(message, (key) => key) };
  if (hint === undefined) return told;
  const addresses: Record<string, string | undefined> = { address, api: apiOption };
  const named = new Set<string>();
  const nameOf = (key: string): string => {
    const option = addresses[key] ?? key;
    return named.has(option) ? option : (named.add(option), describeOption(option));
  };
  return { ...told, hint: fill(hint, nameOf), options: options ?? [...named] };
}

/** Errors of calls have these. */
type Described = ServiceError & Partial<Pick<ServiceApiError, 'correlationId' | 'outcomeUnknown'>>;

/** The message as a sentence, so that another can follow: the service's own text, at its end, may have no full stop. */
export function whatHappened({ message }: ServiceError): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}

/** For the log, what an operator needs: what happened, how the service's support finds it, and what to do. */
export function describeError(error: ServiceError): string {
  const { code, hint, correlationId, outcomeUnknown }: Described = error;
  const message = error.message.replace(/\.$/, '');
  const doubt = outcomeUnknown && !message.includes('carried out') && 'it may have been carried out';
  const id = correlationId && `correlation id ${correlationId}`;
  const said = [`${code}: ${message}`, doubt, id].filter(Boolean).join('; ');
  return hint ? `${said}. ${hint}` : said;
}
