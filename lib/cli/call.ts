import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BEARER } from '../auth/authenticator.js';
import { decodeText } from '../config/read-file.js';
import { createClient, systemIo } from '../engine/create-client.js';
import {
  cleanText,
  describeError,
  describeFault,
  containsSecret,
  type ServiceError,
} from '../errors/index.js';
import { parseJson } from '../exchange/decode.js';
import { type Exchange, type ExchangeResponse } from '../exchange/exchange.types.js';
import { SILENT } from '../exchange/io.js';
import { EXIT, refuseRewritten, UsageError, type CommandIo } from './command.js';
import { readEnvironment } from './env-file.js';
import { readHostConfiguration } from './host-configuration.js';

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

export async function run(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: CALL_OPTIONS, allowPositionals: true });
  const { name, data, yes } = values;
  if (values.help) {
    io.out(CALL_HELP);
    return EXIT.ok;
  }
  const [given = '', path = '', ...more] = positionals;
  const method = given.toUpperCase();
  if (path === '' || more.length > 0 || ![...READING, ...WRITING, 'DELETE'].includes(method))
    throw new UsageError('A call needs a method (GET, HEAD, POST, PUT, PATCH or DELETE) and a path.');
  refuseRewritten(path);
  if (READING.includes(method) && data !== undefined) throw new UsageError(`${method} takes no --data.`);
  if (WRITING.includes(method) && data === undefined) throw new UsageError(`${method} needs --data.`);
  if (method === 'DELETE' && !yes) throw new UsageError('DELETE needs --yes.');
  const body = data === undefined ? {} : await readBody(data, io.cwd);
  const variables = await readEnvironment(io, values['env-file']);
  const { options, identity, faults } = await readHostConfiguration(variables, name);
  if (faults.length > 0 || !options || !identity) {
    const found = faults.map((fault) => `  - ${describeFault(fault)}\n`).join('');
    io.err(
      `Nothing was sent. Read from ${variables.sources}:\n${found}npx nestjs-service doctor --offline says more.\n`,
    );
    return EXIT.failed;
  }
  const { environment, authentication, addresses, http } = options;
  if (environment === 'production' && !READING.includes(method) && !yes)
    throw new UsageError(`${method} in production needs --yes.`);

  const world = systemIo(SILENT);
  const secrets: string[] = [];
  let answer: ExchangeResponse | undefined;
  const exchange: Exchange = async (request) => {
    const { authorization = '', [options.appTokenHeader.toLowerCase()]: appToken = '' } = request.headers;
    // A token request has its credentials in the body.
    if (authorization + appToken === '') return world.exchange(request);
    secrets.push(authorization.slice(BEARER.length), appToken);
    answer = undefined; // The one before says nothing of this attempt.
    return (answer = await world.exchange(request));
  };
  const once = { ...options, http: { ...http, retries: 0, shutdownTimeout: 0 } };
  const service = createClient(once, identity, { ...world, exchange });
  io.err(`${environment}, ${authentication}, at ${addresses.baseUrl}: ${method} ${JSON.stringify(path)}\n`);
  const failure = await service.http
    .request(path, { method, responseType: 'bytes', parse: () => undefined, ...body })
    .catch((error: ServiceError) => error)
    .finally(() => service.close());
  if (failure?.code === 'invalid_request') throw new UsageError(failure.message);
  const lines = answer ? [`HTTP ${answer.status}`] : [];
  // Cookies are credentials of a session.
  const { 'set-cookie': _, ...headers } = answer?.headers ?? {};
  for (const [name, value] of Object.entries(headers))
    lines.push([name, String(value)].map((text) => cleanText(text, secrets, 1_000)).join(': '));
  if (failure) lines.push(describeError(failure));
  io.err(`${lines.join('\n')}\n\n`);
  if (answer) printBody(answer.body, secrets, io);
  return answer && answer.status < 400 ? EXIT.ok : EXIT.failed;
}

async function readBody(given: string, cwd: string) {
  const unreadable = ({ code }: NodeJS.ErrnoException) =>
    Promise.reject(new UsageError(`--data: the file cannot be read (${code}).`));
  const read = async (path: string) => decodeText(await readFile(resolve(cwd, path)));
  const data = given.startsWith('@') ? await read(given.slice(1)).catch(unreadable) : given;
  if (parseJson(data) === undefined)
    throw new UsageError('--data is not valid JSON; for JSON in a file, give @ and its path.');
  return { data, headers: { 'content-type': 'application/json' } };
}

/** On a terminal text alone, with escapes in place of what it would take for a command, or would turn around. */
function printBody(body: Buffer, secrets: readonly string[], io: CommandIo): void {
  const text = body.toString();
  if (containsSecret(text, secrets)) io.err('The body holds a credential, and is not shown.\n');
  else if (!io.outIsTerminal) io.out(body);
  else if (/[\0\ufffd]/.test(text)) io.err(`${body.length} bytes that are no text: > <file> keeps them.\n`);
  else io.out(`${text.replace(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, encodeURIComponent)}\n`);
}
