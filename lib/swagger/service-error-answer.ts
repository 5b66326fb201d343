/** What `ServiceExceptionFilter` answers. */
export class ServiceErrorAnswer {
  /** The HTTP status. */
  statusCode!: number;
  message!: string;
  /** The error's `code`, such as `api_error` or `connection_timeout`. */
  code!: string;

  /** @internal */
  static _OPENAPI_METADATA_FACTORY(): object {
    return {
      statusCode: { type: () => Number, description: 'The HTTP status', example: 503 },
      message: { type: () => String, example: 'The service cannot be reached at the moment.' },
      code: { type: () => String, description: "The kind of the error, for the caller's program" },
    };
  }
}
