import { type ServerResponse } from 'node:http';
import { type Socket } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import { sendAnswer, type SimulatedAnswer, waitUnlessClosed } from './servers/answer.js';
import { type AnswerFault } from './faults.js';
import { type RecordedRequest } from './request-log.js';

const BOMB_CHUNK = 64 * 1024;
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };
const HTML =
  '<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works</h1></body></html>\n';

/** The request to which a fault happens. */
interface FaultScene {
  record: RecordedRequest;
  response: ServerResponse;
  /** The TCP socket below TLS. */
  raw: Socket;
  /** Makes the response without the fault. */
  answer: () => Promise<SimulatedAnswer>;
}

/** Injects the fault instead of sending the usual response. */
export async function playFault(fault: AnswerFault, scene: FaultScene): Promise<void> {
  const { record, response } = scene;
  if (typeof fault === 'string') return playNamedFault(fault, scene);
  if ('gzipBombBytes' in fault) return sendBomb(scene, fault.gzipBombBytes);
  if ('delayMs' in fault) {
    await waitUnlessClosed(response, fault.delayMs);
    return sendAnswer(response, record, await scene.answer());
  }
  if ('trickleMs' in fault) return trickle(scene, fault.trickleMs);
  if ('tokenResponse' in fault) {
    return sendAnswer(response, record, overrideFields(await scene.answer(), fault.tokenResponse));
  }
  return sendAnswer(response, record, fault);
}

async function playNamedFault(fault: AnswerFault & string, scene: FaultScene): Promise<void> {
  const { record, response, raw } = scene;
  switch (fault) {
    case 'lost':
      await scene.answer();
      raw.resetAndDestroy();
      return;
    case 'reset':
      raw.resetAndDestroy();
      return;
    case 'reset-after-headers':
      await sendHead(scene, { ...JSON_TYPE, 'content-length': '1000' }, '{');
      raw.resetAndDestroy();
      return;
    case 'truncate':
      await sendHead(scene, { ...JSON_TYPE, 'content-length': '200' }, `{"data":"${'x'.repeat(91)}`);
      response.socket?.end();
      return;
    case 'hang':
      return;
    case 'html':
      return sendAnswer(response, record, {
        status: 200,
        headers: { 'content-type': 'text/html' },
        body: HTML,
      });
    case 'empty':
      return sendAnswer(response, record, { status: 200, headers: JSON_TYPE, body: '' });
  }
}

/** Sends status 200, headers and the start of a body. Resolves when they are written. */
function sendHead(
  { record, response }: FaultScene,
  headers: Record<string, string>,
  body: string,
): Promise<void> {
  record.status = 200;
  response.writeHead(200, headers);
  return new Promise((resolve) => response.write(body, () => resolve()));
}

function trickle({ record, response }: FaultScene, everyMs: number): void {
  record.status = 200;
  response.writeHead(200, JSON_TYPE);
  response.write('{');
  const timer = setInterval(() => response.write(' '), everyMs);
  response.once('close', () => clearInterval(timer));
}

function sendBomb({ record, response }: FaultScene, bytes: number): void {
  record.status = 200;
  response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' });
  const text = function* () {
    yield '"';
    for (let left = bytes - 2; left > 0; left -= BOMB_CHUNK) yield 'a'.repeat(Math.min(left, BOMB_CHUNK));
    yield '"';
  };
  pipeline(Readable.from(text()), createGzip({ level: constants.Z_BEST_SPEED }), response, () => undefined);
}

/** Replaces fields of a successful response. A field that is set to undefined is left out. An error response stays as it is. */
function overrideFields(answer: SimulatedAnswer, fields: Record<string, unknown>): SimulatedAnswer {
  return answer.status === 200 ? { ...answer, json: { ...(answer.json as object), ...fields } } : answer;
}
