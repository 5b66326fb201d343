import { ServiceError } from './service.error.js';

/** How messages name an option, with the variable that sets it: `oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE)`. */
export type DescribeOption = (option: string) => string;

/**
 * Names the options of an error as the module's user has set them: in its hint, and in its stack, which has the hint.
 * Each is named once, also where the error comes this way again.
 */
export function nameOptions<T>(error: T, describeOption: DescribeOption): T {
  if (!(error instanceof ServiceError) || error.hint === undefined) return error;
  const { hint, options, stack } = error;
  const named = withNames(hint, options, describeOption);
  Object.assign(error, { hint: named });
  error.stack = stack?.replace(hint, () => named);
  return error;
}

/** The same for a text that is about these options. */
export function withNames(
  text: string,
  options: readonly string[] = [],
  describeOption: DescribeOption,
): string {
  return options.reduce((named, option) => {
    const described = describeOption(option);
    const path = new RegExp(`(?<![\\w.])${option.replaceAll('.', '\\.')}(?!\\w|\\.\\w)`);
    return named.includes(described) ? named : named.replace(path, () => described);
  }, text);
}
