import { AxiosHeaders } from 'axios';
import { type IncomingHttpHeaders } from 'node:http';
import { type AnswerContext } from './answer-to-error.js';

/**
 * The headers of an answer, and its context, which no host sees. Node gives each name once and in lower case: nothing is
 * left to normalize, and axios would compare each with each.
 */
export class AnswerHeaders extends AxiosHeaders {
  #context?: AnswerContext;

  static of(headers: IncomingHttpHeaders, context: AnswerContext): AnswerHeaders {
    const made = Object.assign(new AnswerHeaders(), headers);
    made.#context = context;
    return made;
  }

  /** Undefined for other headers: an interceptor of the host may replace an answer. */
  static contextOf(headers: unknown): AnswerContext | undefined {
    return typeof headers === 'object' && headers !== null && #context in headers
      ? headers.#context
      : undefined;
  }

  override normalize(format = false): this {
    return format ? (super.normalize(format) as this) : this;
  }
}
