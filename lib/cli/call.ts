import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BEARER } from '../auth/authenticator.js';
import { decodeFile } from '../config/secret.js';
import { createClient, systemIo } from '../engine/create-client.js';
import {
  cleanText,
  describeError,
  describeFault,
  containsSecret,
  type ServiceError,
} from '../errors/index.js';
import { parseJson } from '../exchange/response.js';
import { type Exchange, type ExchangeResponse } from '../exchange/io.js';
import { SILENT } from '../telemetry/telemetry.js';
import { escapeControls, EXIT, rejectWindowsPath, UsageError, type CommandIo } from './command.js';
import { readEnvironment, readHostConfiguration } from './host-configuration.js';

export const CALL_HELP = `Usage: nestjs-service call <method> <path> [options]

Makes one call to the service as your application would, with its client certificate, app token or access token. The path
is appended to the address in the configuration. The body goes to standard output, status and headers to standard error.
Text that contains one of your credentials is not printed.

  nestjs-service call GET /banks/v1
  nestjs-service call POST /customers/v1 --data '{ "app_user_id": "u-1" }'

Options:
  --data <json>      the body: JSON, or @<file>. Required for POST, PUT and PATCH
  --yes              confirms the call. Required for DELETE, and in production for POST, PUT and PATCH
  --env-file <path>  read this file instead of .env. May be repeated: the first file that sets a variable wins
  --name <name>      use the variables of the module with this name: SERVICE_<NAME>_*
  --help             show this text

The call is not retried. It is sent again only if its credentials were refused and new ones can be obtained, for example
a new access token after a 401.

Exit codes: 0 status below 400; 1 status 400 or above, or no response; 2 wrong usage
`;

export const CALL_OPTIONS = {
  data: { type: 'string' },
  yes: { type: 'boolean' },
  'env-file': { type: 'string', multiple: true },
  name: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const METHODS_WITHOUT_BODY = ['GET', 'HEAD'];
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH'];

export async function run(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: CALL_OPTIONS, allowPositionals: true });
  const { name, data, yes } = values;
  if (values.help) {
    io.out(CALL_HELP);
    return EXIT.ok;
  }
  const [given = '', path = '', ...more] = positionals;
  const method = given.toUpperCase();
  const methods = [...METHODS_WITHOUT_BODY, ...METHODS_WITH_BODY, 'DELETE'];
  if (path === '' || more.length > 0 || !methods.includes(method))
    throw new UsageError('A call needs a method (GET, HEAD, POST, PUT, PATCH or DELETE) and a path.');
  rejectWindowsPath(path);
  const isReading = METHODS_WITHOUT_BODY.includes(method);
  if (isReading && data !== undefined) throw new UsageError(`${method} takes no --data.`);
  if (METHODS_WITH_BODY.includes(method) && data === undefined)
    throw new UsageError(`${method} needs --data.`);
  if (method === 'DELETE' && !yes) throw new UsageError('DELETE needs --yes.');
  const body = data === undefined ? {} : await readData(data, io.cwd);
  const variables = await readEnvironment(io, values['env-file']);
  const { options, identity, faults } = await readHostConfiguration(variables, name);
  if (faults.length > 0 || !options || !identity) {
    const found = faults.map((fault) => `  - ${describeFault(fault)}\n`).join('');
    io.err(
      `The configuration is not valid, so nothing was sent. Read from ${variables.sources}:\n${found}For details: npx nestjs-service doctor --offline\n`,
    );
    return EXIT.failed;
  }
  const { environment, authentication, addresses, http } = options;
  if (environment === 'production' && !isReading && !yes)
    throw new UsageError(`${method} in production needs --yes.`);

  const realIo = systemIo(SILENT);
  const secrets: string[] = [];
  let answer: ExchangeResponse | undefined;
  const exchange: Exchange = async (request) => {
    const { authorization = '', [options.appTokenHeader.toLowerCase()]: appToken = '' } = request.headers;
    // Only API calls have one of these headers. A token request has its credentials in the body.
    if (authorization + appToken === '') return realIo.exchange(request);
    secrets.push(authorization.slice(BEARER.length), appToken);
    // If this attempt fails without a response, the response of an earlier attempt must not be shown for it.
    answer = undefined;
    return (answer = await realIo.exchange(request));
  };
  const once = { ...options, http: { ...http, retries: 0, shutdownTimeout: 0 } };
  const service = createClient(once, identity, { ...realIo, exchange });
  io.err(`${environment}, ${authentication}, at ${addresses.baseUrl}: ${method} ${JSON.stringify(path)}\n`);
  const failure = await service.http
    .request(path, { method, responseType: 'bytes', parse: () => undefined, ...body })
    .catch((error: ServiceError) => error)
    .finally(() => service.close());
  if (failure?.code === 'invalid_request') throw new UsageError(failure.message);
  const lines = answer ? [`HTTP ${answer.status}`] : [];
  // A cookie may be the credential of a session, so it is not printed.
  const { 'set-cookie': _, ...headers } = answer?.headers ?? {};
  for (const [name, value] of Object.entries(headers))
    lines.push([name, String(value)].map((text) => cleanText(text, secrets, 1_000)).join(': '));
  if (failure) lines.push(describeError(failure));
  io.err(`${lines.join('\n')}\n\n`);
  if (answer) printBody(answer.body, secrets, io);
  return answer && answer.status < 400 ? EXIT.ok : EXIT.failed;
}

async function readData(given: string, cwd: string) {
  const unreadable = ({ code }: NodeJS.ErrnoException) =>
    Promise.reject(new UsageError(`--data: the file cannot be read (${code}). Check its path.`));
  const read = async (path: string) => decodeFile(await readFile(resolve(cwd, path)));
  const data = given.startsWith('@') ? await read(given.slice(1)).catch(unreadable) : given;
  if (parseJson(data) === undefined)
    throw new UsageError(
      '--data is not valid JSON. To send a file, write @ before its path: --data @body.json',
    );
  return { data, headers: { 'content-type': 'application/json' } };
}

/** A file or pipe gets the body's bytes. A terminal gets text only, with control characters escaped. */
function printBody(body: Buffer, secrets: readonly string[], io: CommandIo): void {
  const text = body.toString();
  if (containsSecret(text, secrets))
    io.err('The body contains one of your credentials, so it is not shown.\n');
  else if (!io.outIsTerminal) io.out(body);
  else if (/[\0\ufffd]/.test(text))
    io.err(`The body is binary (${body.length} bytes). To save it, append: > <file>\n`);
  else io.out(`${escapeControls(text)}\n`);
}
