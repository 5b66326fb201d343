import { type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { type ServiceEnvironment } from '../../config/options.js';
import { type SimulatorFace, type RecordedRequest } from '../request-log.js';
import { type CertificateVerdict } from './client-certificate.js';

interface Arrival {
  face: SimulatorFace;
  environment: ServiceEnvironment;
  verdict: CertificateVerdict;
  /** The number of the connection. */
  number: number;
}

/** Makes the entry of the request log. */
export function makeRecord(request: IncomingMessage, body: string, arrival: Arrival): RecordedRequest {
  const headers = Object.entries(request.headers).map(([name, value]) => [name, [value].flat().join(', ')]);
  const { subject, fingerprint256 } = arrival.verdict;
  return {
    face: arrival.face,
    environment: arrival.environment,
    method: request.method ?? '',
    path: request.url ?? '',
    headers: Object.fromEntries(headers) as Record<string, string>,
    rawHeaders: request.rawHeaders,
    body,
    ...parseBody(body, request.headers['content-type'] ?? ''),
    ...(subject === undefined ? {} : { certificateSubject: subject }),
    ...(fingerprint256 === undefined ? {} : { certificateFingerprint256: fingerprint256 }),
    receivedAt: Date.now(),
    connection: arrival.number,
  };
}

function parseBody(body: string, contentType: string): Pick<RecordedRequest, 'json' | 'form'> {
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) {
    return { form: Object.fromEntries(new URLSearchParams(body)) };
  }
  if (!/^application\/(?:[\w.+-]*\+)?json\b/i.test(contentType) || body === '') return {};
  try {
    return { json: JSON.parse(body) as unknown };
  } catch {
    return {};
  }
}

/** Reads the whole body. Resolves to undefined if the client closes the connection before the end. */
export async function readRequestBody(request: IncomingMessage): Promise<string | undefined> {
  try {
    return await text(request);
  } catch {
    return undefined;
  }
}
