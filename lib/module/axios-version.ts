import axios from 'axios';
import { type ConfigurationFault } from '../errors/index.js';

/**
 * The lowest version of the range in package.json. Earlier ones refuse the setting that runs our interceptor after the
 * host's, so that every call would end as an AxiosError.
 */
export const OLDEST_AXIOS = '1.13.5';

/** For an application that was installed past the range, as `--legacy-peer-deps` and `overrides` do. */
export function axiosFaults(version: unknown = axios.VERSION): ConfigurationFault[] {
  // A test's double of axios may have no version.
  const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(String(version))?.slice(1).map(Number);
  const oldest = OLDEST_AXIOS.split('.').map(Number);
  const differing = parts?.findIndex((part, index) => part !== oldest[index]) ?? -1;
  if (!parts || differing === -1 || parts[differing] > oldest[differing]) return [];
  const message = `version ${String(version)} is too old: no call would work. Install ${OLDEST_AXIOS} or later, for example with npm i axios@1.`;
  return [{ option: 'axios', message }];
}
