export class GetSecretValueCommand {
  constructor(input) {
    this.input = input;
  }
}

export class SecretsManagerClient {
  /** What the account holds: name -> string. */
  static secrets = new Map();

  async send({ input }) {
    const SecretString = SecretsManagerClient.secrets.get(input.SecretId);
    if (SecretString === undefined) {
      throw Object.assign(new Error('No such secret'), { name: 'ResourceNotFoundException' });
    }
    return { SecretString };
  }
}
