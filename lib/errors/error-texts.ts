import { ServiceApiError } from './api.error.js';
import { ServiceConnectionError } from './connection.error.js';
import { ServiceError, type Explanation, type Remedy } from './service.error.js';

/**
 * Fills the texts of a table in. In braces stand the values, and the paths of options: those of the hint are the options
 * that it is about, in its order unless the row says another.
 */
export function explain(
  message: string,
  { hint, options }: Remedy,
  values: Readonly<Record<string, string | undefined>>,
): Explanation {
  const fill = (text: string): string => text.replace(/\{([\w.]+)\}/g, (_, name: string) => valueOf(name));
  const valueOf = (name: string): string => (name in values ? (values[name] ?? '') : name);
  if (hint === undefined) return { message: fill(message) };
  const named = [...hint.matchAll(/\{(address|api|[a-z]+\.\w+|appToken|sendAppTokenWithBearer)\}/g)];
  return {
    message: fill(message),
    hint: fill(hint),
    options: options ?? [...new Set(named.map(([, name]) => valueOf(name)))],
  };
}

/** How messages name an option, with the variable that sets it: `oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE)`. */
export type DescribeOption = (option: string) => string;

/** Names the options of an error in its hint and stack as they are set; once, also where it comes this way again. */
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

/** What happened, as a sentence: that of an API error with its call and status, which the service's own text leaves out. */
export function whatHappened(error: ServiceError): string {
  if (!(error instanceof ServiceApiError) || error.body?.message !== error.message) return error.message;
  return `${error.method} ${error.path}: HTTP ${error.status} ("${error.message}").`;
}

/** For the log, what an operator needs: what happened, how the service's support finds it, and what to do. */
export function describeError(error: ServiceError): string {
  const { code, hint } = error;
  const message = whatHappened(error).replace(/\.$/, '');
  const isOfCall = error instanceof ServiceApiError || error instanceof ServiceConnectionError;
  const { method, path, correlationId } = isOfCall ? error : {};
  const call = path === undefined || message.includes(path) ? '' : `${method} ${path}: `;
  const doubt =
    isOfCall && error.outcomeUnknown && !message.includes('carried out') && 'it may have been carried out';
  const id = correlationId && `correlation id ${correlationId}`;
  const said = [`${code}: ${call}${message}`, doubt, id].filter(Boolean).join('; ');
  return hint ? `${said}. ${hint}` : said;
}
