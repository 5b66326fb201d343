import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createService, systemIo } from '../engine/create-service.js';
import {
  cleanText,
  holdsSecret,
  ServiceConfigurationError,
  ServiceError,
  ServiceRequestError,
  whatHappened,
} from '../errors/index.js';
import { type Exchange, type ExchangeResponse } from '../exchange/exchange.types.js';
import { SILENT } from '../exchange/io.js';
import { EXIT, UsageError, type CommandIo } from './command.js';
import { readEnvironment } from './env-file.js';
import { checkName, readHostConfiguration } from './host-configuration.js';

export const CALL_HELP = `Usage: nestjs-service call <method> <path> [options]

Makes one call as the application would: with the client certificate, app token or access token of its configuration, to
its addresses only. Prints the body to standard output; status and headers to standard error. Nothing that holds a
credential is printed.

  nestjs-service call GET /banks/v1
  nestjs-service call POST /customers/v1 --data '{ "app_user_id": "u-1" }'

Options:
  --data <json>      the body, or @<file>: needed by POST, PUT and PATCH
  --yes              needed by DELETE; in production by POST, PUT and PATCH too
  --env-file <path>  read this file in place of .env; may be given several times, the first counts first
  --name <name>      call with the module of this name: SERVICE_<NAME>_*
  --help             this text

A call is sent again only if its credentials were refused and there are others, as a new access token after a 401.
Exit codes: 0 for a status below 400, 1 for another or no answer, 2 wrong usage
`;

export const CALL_OPTIONS = {
  data: { type: 'string' },
  yes: { type: 'boolean' },
  'env-file': { type: 'string', multiple: true },
  name: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const READING = ['GET', 'HEAD'];
const WRITING = ['POST', 'PUT', 'PATCH'];
const MAX_HEADER = 1_000;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: CALL_OPTIONS, allowPositionals: true });
  if (values.help) {
    io.out(CALL_HELP);
    return EXIT.ok;
  }
  const { name, data, yes } = values;
  checkName(name);
  const [given = '', path = '', ...more] = positionals;
  const method = given.toUpperCase();
  if (path === '' || more.length > 0 || ![...READING, ...WRITING, 'DELETE'].includes(method))
    throw new UsageError('A call needs a method (GET, HEAD, POST, PUT, PATCH or DELETE) and a path.');
  if (READING.includes(method) && data !== undefined) throw new UsageError(`${method} takes no --data.`);
  if (WRITING.includes(method) && data === undefined) throw new UsageError(`${method} needs --data.`);
  if (method === 'DELETE' && !yes) throw new UsageError('DELETE needs --yes.');
  const body = data === undefined ? {} : await readBody(data, io.cwd);

  const variables = await readEnvironment(io, values['env-file']);
  const { options, identity, faults } = await readHostConfiguration(variables, name);
  try {
    if (faults.length > 0 || !options || !identity) {
      const error = new ServiceConfigurationError(faults, `Nothing was sent. Read from ${variables.sources}`);
      io.err(`${error.message}\nnpx nestjs-service doctor --offline says more.\n`);
      return EXIT.failed;
    }
    const { environment, authentication, addresses, http } = options;
    if (environment === 'production' && !READING.includes(method) && !yes)
      throw new UsageError(`${method} in production needs --yes.`);
    const world = systemIo(SILENT);
    const seen = new SeenAnswer(world.exchange, options.appTokenHeader);
    const once = { ...options, http: { ...http, retries: 0, shutdownTimeout: 0 } };
    const service = createService(once, identity, { ...world, exchange: seen.exchange });
    io.err(`${environment}, ${authentication}, at ${addresses.baseUrl}: ${method} ${JSON.stringify(path)}\n`);
    const failure = await service.http
      .request(path, { method, responseType: 'bytes', ...body })
      .then(() => undefined, toServiceError)
      .finally(() => service.close());
    return print(failure, seen, io);
  } finally {
    await identity?.close();
  }
}

async function readBody(text: string, cwd: string) {
  try {
    const data = text.startsWith('@') ? await readFile(resolve(cwd, text.slice(1)), 'utf8') : text;
    JSON.parse(data);
    return { data, headers: { 'content-type': 'application/json' } };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw new UsageError(`--data: the file cannot be read (${code}).`);
    // The text of the error would quote what may be private.
    throw new UsageError('--data is not valid JSON; for JSON in a file, give @ and its path.');
  }
}

/** @throws UsageError for a path that leads elsewhere */
function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceRequestError) throw new UsageError(error.message);
  if (error instanceof ServiceError) return error;
  throw error;
}

/** Performs exchanges, and keeps the last answer of the API with the credentials that were sent for it. */
class SeenAnswer {
  response?: ExchangeResponse;
  secrets: string[] = [];

  constructor(
    private readonly perform: Exchange,
    private readonly appTokenHeader: string,
  ) {}

  readonly exchange: Exchange = async (request) => {
    const carriers = ['authorization', this.appTokenHeader.toLowerCase()];
    const sent = Object.entries(request.headers).filter(([name]) => carriers.includes(name.toLowerCase()));
    // A token request has its credentials in the body.
    if (sent.length === 0) return this.perform(request);
    this.secrets.push(...sent.map(([, value]) => value.replace(/^Bearer /, '')));
    this.response = undefined;
    this.response = await this.perform(request);
    return this.response;
  };
}

/** What happened, the status and the headers of the answer, if there is one, and what to do: a line each; then the body. */
function print(failure: ServiceError | undefined, { response, secrets }: SeenAnswer, io: CommandIo): number {
  const happened = failure ? whatHappened(failure) : '';
  const status = response ? `HTTP ${response.status}` : '';
  // What happened says it too, unless it happened after the answer, to a token.
  const lines = [happened, happened.includes(`: ${status}`) ? '' : status];
  for (const [name, values = []] of Object.entries(response?.headers ?? {}))
    for (const value of [values].flat())
      // A cookie is a credential of the session.
      lines.push(`${name}: ${name === 'set-cookie' ? '[not shown]' : cleanText(value, secrets, MAX_HEADER)}`);
  if (failure?.hint) lines.push(`-> ${failure.hint}`);
  io.err(`${lines.filter((line) => line !== '').join('\n')}\n${response ? '\n' : ''}`);
  if (!response) return EXIT.failed;
  const { body } = response;
  const text = asText(body);
  // Each byte is a character of latin1.
  if (holdsSecret(body.toString('latin1'), secrets))
    io.err('The body holds a credential, and is not shown.\n');
  else if (!io.outIsTerminal) io.out(body);
  else if (text === undefined)
    io.err(`${body.length} bytes that are no text. Send them to a file: > <file>\n`);
  else if (text !== '') io.out(text.endsWith('\n') ? text : `${text}\n`);
  return response.status < 400 ? EXIT.ok : EXIT.failed;
}

/** With escapes in place of what a terminal would take for a command, or would turn around. Undefined for other bytes. */
function asText(body: Buffer): string | undefined {
  const text = body.toString('utf8');
  if (/[\0\ufffd]/.test(text)) return undefined;
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (found) =>
    '\n\t'.includes(found) ? found : `\\u{${found.codePointAt(0)?.toString(16)}}`,
  );
}
