import axios, { AxiosHeaders, type AxiosError } from 'axios';
import http, {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';
import { classify } from '../exchange/classify.js';
import { framing, timerDelay } from '../exchange/framing.js';
import { ExchangeProgress } from '../exchange/exchange-progress.js';
import {
  ExchangeFault,
  type Exchange,
  type ExchangeFaultDetails,
  type ExchangeRequest,
  type ExchangeResponse,
} from '../exchange/exchange.types.js';

/**
 * The same exchange through axios's own http adapter (`http.adapter: 'axios'`), for hosts whose tools hook into it.
 * Slower: see test/bench/README.md. What axios leaves open (a deadline for all of it, the caller's own abort reason,
 * no redirects, no proxy of the environment) is closed here.
 */
export const axiosExchange: Exchange = async (request) => {
  const { signal } = request;
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const progress = new ExchangeProgress();
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    controller.abort();
  }, timerDelay(request.timeoutMs));
  signal?.addEventListener('abort', abort, { once: true });
  try {
    if (signal?.aborted) throw signal.reason;
    if (request.body instanceof Readable && request.body.destroyed) throw bodyFault(progress);
    return await send(request, controller.signal, progress);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error instanceof ExchangeFault) throw error;
    if (request.body instanceof Readable && !timedOut && request.body.errored) throw bodyFault(progress);
    throw toFault(error, timedOut, progress);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    if (request.body instanceof Readable) request.body.destroy();
  }
};

async function send(
  request: ExchangeRequest,
  signal: AbortSignal,
  progress: ExchangeProgress,
): Promise<ExchangeResponse> {
  const { url, method, headers, body, agent, maxResponseBytes } = request;
  // The adapter alone: the default instance has the host's interceptors, which must not see these headers.
  const response = await axios.getAdapter('http')({
    url: url.href,
    method,
    headers: new AxiosHeaders(body === undefined ? headers : { ...headers, ...framing(body) }),
    data: body,
    httpAgent: agent,
    httpsAgent: agent,
    responseType: 'arraybuffer',
    maxRedirects: 0,
    maxBodyLength: Infinity,
    maxContentLength: maxResponseBytes,
    proxy: false,
    transport: followedTransport(url, progress),
    validateStatus: () => true,
    signal,
  });
  return {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers as IncomingHttpHeaders,
    body: Buffer.from(response.data as Buffer),
  };
}

/** Node's own request function, looked up at each call, as tools replace it. */
function followedTransport({ protocol }: URL, progress: ExchangeProgress) {
  return {
    request: (options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest => {
      const request = (protocol === 'https:' ? https : http).request(options, (response) => {
        progress.answering();
        onResponse(response);
      });
      progress.follow(request);
      // Nobody asked for another protocol (101), and Node would say nothing more of this request.
      request.on('upgrade', (_, socket) => {
        socket.destroy();
        request.emit('error', Object.assign(new Error('upgrade'), { code: 'ERR_HTTP_UPGRADE' }));
      });
      return request;
    },
  };
}

function toFault(
  error: unknown,
  timedOut: boolean,
  { phase, reusedSocket }: ExchangeProgress,
): ExchangeFault {
  const { message, code, cause } = error as AxiosError;
  const fault = (more: Partial<ExchangeFaultDetails>): ExchangeFault =>
    new ExchangeFault({ kind: 'network', certificateRefused: false, phase, reusedSocket, ...more });
  if (timedOut) return fault({ kind: 'timeout' });
  if (/maxContentLength size/.test(message)) return fault({ kind: 'too_large' });
  if (code === 'ERR_BAD_RESPONSE' || /^(stream has been )?aborted$/i.test(message))
    return fault({ kind: 'reset' });
  return fault(classify(cause ?? error));
}

function bodyFault({ phase, reusedSocket }: ExchangeProgress): ExchangeFault {
  return new ExchangeFault({
    kind: 'network',
    reason: 'ERR_REQUEST_BODY',
    certificateRefused: false,
    phase,
    reusedSocket,
  });
}
