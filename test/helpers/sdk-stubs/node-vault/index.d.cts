/** The part of the client that docs/certificates.md uses. */
declare function nodeVault(options?: { endpoint?: string; token?: string }): {
  approleLogin(login: { role_id: string; secret_id: string }): Promise<unknown>;
  read(path: string): Promise<unknown>;
};
export = nodeVault;
