import { cleanText, type ServiceError, whatHappened } from '../errors/index.js';
import { type Exchange, type ExchangeResponse } from '../exchange/exchange.types.js';
import { type CommandIo } from './command.js';

const MAX_HEADER = 1_000;
const NOT_SHOWN = '[not shown]';

/** Performs exchanges, and keeps the last answer of the API with the credentials that were sent for it. */
export class SeenAnswer {
  readonly #exchange: Exchange;
  readonly #appTokenHeader: string;
  response?: ExchangeResponse;
  secrets: string[] = [];

  constructor(exchange: Exchange, appTokenHeader: string) {
    this.#exchange = exchange;
    this.#appTokenHeader = appTokenHeader.toLowerCase();
  }

  readonly exchange: Exchange = async (request) => {
    const carriers = ['authorization', this.#appTokenHeader];
    const secrets = Object.entries(request.headers).flatMap(([name, value]) =>
      carriers.includes(name.toLowerCase()) ? [value.replace(/^Bearer /, '')] : [],
    );
    // A token request has its credentials in the body.
    if (secrets.length === 0) return this.#exchange(request);
    this.response = undefined;
    this.response = await this.#exchange(request);
    this.secrets = [...new Set([...this.secrets, ...secrets])];
    return this.response;
  };
}

/** What happened, the status and the headers of the answer, if there is one, and what to do: a line each. */
export function describeEnd(
  failure: ServiceError | undefined,
  response: ExchangeResponse | undefined,
  secrets: readonly string[],
): string {
  const happened = failure ? whatHappened(failure) : '';
  const status = response ? `HTTP ${response.status}` : '';
  const lines = [
    happened,
    // What happened says it too, unless it happened after the answer, to a token.
    happened.includes(`: ${status}`) ? '' : status,
    ...(response ? describeHeaders(response, secrets) : []),
    failure?.hint ? `-> ${failure.hint}` : '',
  ];
  const said = lines.filter((line) => line !== '').map((line) => `${line}\n`);
  return `${said.join('')}${response ? '\n' : ''}`;
}

/** A cookie is a credential of the session. */
function describeHeaders({ headers }: ExchangeResponse, secrets: readonly string[]): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []]
      .flat()
      .map((each) => `${name}: ${name === 'set-cookie' ? NOT_SHOWN : cleanText(each, secrets, MAX_HEADER)}`),
  );
}

/** The body as it is, but for credentials that come back in it. On a terminal it cannot be more than text. */
export function writeBody(body: Buffer, secrets: readonly string[], io: CommandIo): void {
  const shown = withoutSecrets(body, secrets);
  if (shown.length === 0) return;
  if (!io.outIsTerminal) return io.out(shown);
  const text = asText(shown);
  if (text === undefined) io.err(`${shown.length} bytes that are no text. Send them to a file: > <file>\n`);
  else io.out(text.endsWith('\n') ? text : `${text}\n`);
}

function withoutSecrets(body: Buffer, secrets: readonly string[]): Buffer {
  // Each byte is a character of latin1.
  const text = body.toString('latin1');
  const cut = secrets.reduce((rest, secret) => rest.replace(inEachForm(secret), NOT_SHOWN), text);
  return cut === text ? body : Buffer.from(cut, 'latin1');
}

/** JSON, an address or a page may write each character in another way: `/` as `\/`, `\u002f`, `%2F`, `%252F` or `&#47;`. */
function inEachForm(secret: string): RegExp {
  const forms = Array.from(secret, (character) => {
    const code = character.charCodeAt(0);
    const hex = code.toString(16).padStart(2, '0');
    const plain = character.replace(/\W/, '\\$&');
    return `(?:\\\\?${plain}|\\\\u00${hex}|%(?:25)?${hex}|&#0?${code};|&#x${hex};)`;
  });
  return new RegExp(forms.join(''), 'gi');
}

/** With escapes in place of what a terminal would take for a command, or would turn around. Undefined for other bytes. */
function asText(body: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    if (text.includes('\0')) return undefined;
    return text.replace(/[\p{Cc}\p{Cf}]/gu, (found) =>
      found === '\n' || found === '\t' ? found : `\\u{${found.codePointAt(0)?.toString(16)}}`,
    );
  } catch {
    return undefined;
  }
}
