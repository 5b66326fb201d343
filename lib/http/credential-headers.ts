import { type AxiosHeaders } from 'axios';

/** Takes the authenticating headers out, however they are spelt. */
export function dropCredentials(headers: AxiosHeaders, appTokenHeader: string): void {
  const appToken = appTokenHeader.toLowerCase();
  for (const name of Object.keys(headers)) {
    const key = name.toLowerCase();
    if (key === 'authorization' || key === appToken) headers[name] = undefined;
  }
}
