/** The part of the SDK that docs/certificates.md uses. */
export class GetSecretValueCommand {
  readonly input: { SecretId: string | undefined };
  constructor(input: { SecretId: string | undefined });
}
export class SecretsManagerClient {
  constructor(...configuration: [] | [{ region?: string }]);
  send(command: GetSecretValueCommand): Promise<{ SecretString?: string }>;
}
