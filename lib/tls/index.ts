export { Agents } from './agents.js';
export { certificateRefusedError } from './certificate-refused.js';
export {
  ClientIdentity,
  type ClientIdentitySettings,
  type IdentityChange,
  type IdentityStatus,
} from './client-identity.js';
export { IdentityAgent } from './identity-agent.js';
export { loadIdentity, type LoadedIdentity, type LoadResult } from './load-identity.js';
export { type Log } from './log.js';
export { type PoolSettings } from './pooled-agent.js';
export { describeCertificate } from './summary.js';
