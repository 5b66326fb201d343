import { type Explanation, type Remedy } from './service.error.js';

/** Names an option for a message, with its variable: `oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE)`. */
export type DescribeOption = (option: string) => string;

/** An address of the service, as hints name it. */
export interface AddressOption {
  /** The option that sets the address: `urls.baseUrl`. */
  option: string;
  describeOption: DescribeOption;
}

/**
 * Fills in the placeholders of a message and its hint:
 * - `{status}` or another key of `values`: that value.
 * - in a hint, the path of an option, such as `{oauth.clientSecret}`: the option, at its first mention with its variable.
 * - in a hint, `{address}` and `{api}`: the options with the address of the request and of the API.
 *
 * The options that the hint mentions become those of the error, unless `options` lists others.
 */
export function fillExplanation(
  message: string,
  { hint, options }: Remedy,
  values: Readonly<Record<string, string | undefined>>,
  { option: address, apiOption, describeOption }: AddressOption & { apiOption?: string },
): Explanation {
  const fill = (text: string, fillOther: (key: string) => string): string =>
    text.replace(/\{([\w.]+)\}/g, (_, key: string) => (key in values ? (values[key] ?? '') : fillOther(key)));
  const filled = { message: fill(message, (key) => key) };
  if (hint === undefined) return filled;
  const addresses: Record<string, string | undefined> = { address, api: apiOption };
  const named = new Set<string>();
  const nameOption = (key: string): string => {
    const option = addresses[key] ?? key;
    return named.has(option) ? option : (named.add(option), describeOption(option));
  };
  return { ...filled, hint: fill(hint, nameOption), options: options ?? [...named] };
}
