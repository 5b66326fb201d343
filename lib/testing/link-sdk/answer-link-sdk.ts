import { readFileSync } from 'node:fs';
import { type RecordedRequest } from '../request-log.js';
import { type Answer, failure } from '../servers/answer.js';
import { checkSession, type SessionCheckParts } from './check-session.js';

const SCRIPT = '/link-sdk.js';
const SESSIONS = '/link-sdk/sessions';

/** A page of any origin may use the SDK; no cookie is needed. */
const CORS = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'content-type' };

/** What the browser asks the service for; undefined where the path is not of the SDK. */
export function answerLinkSdk(
  { method, environment, json }: RecordedRequest,
  path: string,
  parts: SessionCheckParts,
): Answer | undefined {
  const { pathname } = new URL(path, 'https://service');
  if (pathname === SCRIPT && method === 'GET') {
    const headers = { ...CORS, 'content-type': 'text/javascript; charset=utf-8' };
    return { status: 200, headers, body: readFileSync(new URL('./link-sdk.js', import.meta.url), 'utf8') };
  }
  if (pathname !== SESSIONS) return undefined;
  if (method === 'OPTIONS') return { status: 204, headers: CORS };
  if (method !== 'POST') {
    return failure(405, 'METHOD_NOT_ALLOWED', 'This resource takes POST', { ...CORS, allow: 'POST' });
  }
  const session = checkSession(json, environment, parts);
  return typeof session === 'string'
    ? failure(403, 'SESSION_REFUSED', session, CORS)
    : { status: 201, headers: CORS, json: session };
}
