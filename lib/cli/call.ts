import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type ResolvedOptions } from '../config/resolved-options.js';
import { createService, systemIo } from '../engine/create-service.js';
import { ServiceConfigurationError, ServiceError, ServiceRequestError } from '../errors/index.js';
import { SILENT } from '../exchange/io.js';
import { type ClientIdentity } from '../tls/client-identity.js';
import { describeEnd, SeenAnswer, writeBody } from './call-output.js';
import { EXIT, UsageError, type CommandIo } from './command.js';
import { readEnvironment } from './env-file.js';
import { checkName, readHostConfiguration } from './host-configuration.js';

export const CALL_HELP = `Usage: nestjs-service call <method> <path> [options]

Makes one call as the application would: with the client certificate, app token or access token of its configuration, to
its addresses only. Prints the body to standard output; status and headers to standard error, without credentials.

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

interface Request {
  method: string;
  path: string;
  /** JSON. */
  data?: string;
}

export async function run(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: CALL_OPTIONS, allowPositionals: true });
  if (values.help) {
    io.out(CALL_HELP);
    return EXIT.ok;
  }
  const { name, yes = false } = values;
  checkName(name);
  const request = await readRequest(positionals, values.data, io);
  if (request.method === 'DELETE' && !yes) throw new UsageError('DELETE needs --yes.');
  const variables = await readEnvironment(io, values['env-file']);
  const { options, identity, faults, certificateFaults } = await readHostConfiguration(variables, name);
  try {
    const all = [...faults, ...certificateFaults];
    if (all.length > 0 || !options || !identity) {
      const error = new ServiceConfigurationError(all, `Nothing was sent. Read from ${variables.sources}`);
      io.err(`${error.message}\nnpx nestjs-service doctor --offline says more.\n`);
      return EXIT.failed;
    }
    if (options.environment === 'production' && !READING.includes(request.method) && !yes) {
      throw new UsageError(`${request.method} in production needs --yes.`);
    }
    return await call(request, options, identity, io);
  } finally {
    await identity?.close();
  }
}

async function readRequest(
  [given = '', path = '', ...more]: string[],
  text: string | undefined,
  { cwd }: CommandIo,
): Promise<Request> {
  const method = given.toUpperCase();
  if (path === '' || more.length > 0 || ![...READING, ...WRITING, 'DELETE'].includes(method)) {
    throw new UsageError('A call needs a method (GET, HEAD, POST, PUT, PATCH or DELETE) and a path.');
  }
  if (READING.includes(method) && text !== undefined) throw new UsageError(`${method} takes no --data.`);
  if (WRITING.includes(method) && text === undefined) throw new UsageError(`${method} needs --data.`);
  if (text === undefined) return { method, path };
  const file = text.startsWith('@') ? resolve(cwd, text.slice(1)) : undefined;
  try {
    const data = file === undefined ? text : await readFile(file, 'utf8');
    JSON.parse(data);
    return { method, path, data };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw new UsageError(`--data: the file cannot be read (${code}).`);
    // The text of the error would quote what may be private.
    throw new UsageError('--data is not valid JSON; for JSON in a file, give @ and its path.');
  }
}

/** @throws UsageError for a path that leads elsewhere */
async function call(
  { method, path, data }: Request,
  options: ResolvedOptions,
  identity: ClientIdentity,
  io: CommandIo,
): Promise<number> {
  const { environment, authentication, addresses, http } = options;
  const once = { ...options, http: { ...http, retries: 0, shutdownTimeout: 0 } };
  const world = systemIo(SILENT);
  const seen = new SeenAnswer(world.exchange, options.appTokenHeader);
  const service = createService(once, identity, { ...world, exchange: seen.exchange });
  io.err(`${environment}, ${authentication}, at ${addresses.baseUrl}: ${method} ${JSON.stringify(path)}\n`);
  let failure: ServiceError | undefined;
  try {
    const body = data === undefined ? {} : { data, headers: { 'content-type': 'application/json' } };
    await service.http.request(path, { method, responseType: 'bytes', ...body });
  } catch (error) {
    if (error instanceof ServiceRequestError) throw new UsageError(error.message);
    if (!(error instanceof ServiceError)) throw error;
    failure = error;
  } finally {
    await service.close();
  }
  const { response, secrets } = seen;
  io.err(describeEnd(failure, response, secrets));
  if (!response) return EXIT.failed;
  writeBody(response.body, secrets, io);
  return response.status < 400 ? EXIT.ok : EXIT.failed;
}
