import { ServiceRequestError } from '../errors/index.js';
import { checkParser, type AnswerParser, type ParsedAnswer, type ParseOption } from './answer-parser.js';

/** What the body of a success is read as, if not as JSON. */
export type ResponseType = 'text' | 'bytes';

/** The option `responseType` of a call. */
export interface ResponseTypeOption<Type extends ResponseType = ResponseType> {
  /** `text`: a string, read as UTF-8; `bytes`: a Uint8Array. An error's body is JSON all the same. */
  responseType: Type;
}

/** How the body of a success is read: by a parser, or as text or bytes. */
export type ReadOption<Parser extends AnswerParser, Type extends ResponseType> =
  | (ParseOption<Parser> & Partial<ResponseTypeOption<'text'>>)
  | (ResponseTypeOption<Type> & { parse?: undefined });

/** What a call then resolves with. A type that its options do not tell is as wide as it can be. */
export type ReadAnswer<Parser extends AnswerParser, Type extends ResponseType> = AnswerParser extends Parser
  ? ResponseType extends Type
    ? unknown
    : { text: string; bytes: Uint8Array }[Type]
  : ParsedAnswer<Parser>;

/** `arraybuffer` is axios's name of a Buffer. */
const TYPES: readonly unknown[] = ['json', 'text', 'bytes', 'arraybuffer'];
const STREAM =
  "cannot be 'stream': use 'bytes' with ServiceHttpService, 'arraybuffer' with axios, or a client of your own with auth.httpsAgent";

/** Throws ServiceRequestError for a `responseType` that there is not. */
export function checkResponseType(type: unknown): void {
  if (type === undefined || type === null || TYPES.includes(type)) return;
  throw ServiceRequestError.ofCode(
    'responseType',
    type === 'stream' ? STREAM : "must be 'json', 'text' or 'bytes'",
  );
}

/** A parser reads JSON or text. Throws ServiceRequestError. */
export function checkReading(parse: unknown, request: object): void {
  checkParser(parse);
  // Own: one in Object.prototype would refuse every `parse`.
  const responseType = Object.getOwnPropertyDescriptor(request, 'responseType')?.value as unknown;
  if (responseType !== 'bytes' && responseType !== 'arraybuffer') return;
  throw ServiceRequestError.ofCode('parse', 'reads JSON or text: leave it out to get bytes');
}
