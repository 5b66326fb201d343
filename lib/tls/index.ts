export { Agents } from './agents.js';
export { certificateRefusedError } from './certificate-refused.js';
export {
  ClientIdentity,
  type ClientIdentitySettings,
  type IdentityChange,
  type IdentityStatus,
} from './client-identity.js';
export { IdentityAgent } from './connections/identity-agent.js';
export { loadIdentity, type LoadedIdentity, type LoadResult } from './material/check-identity.js';
export { type PoolSettings } from './connections/pooled-agent.js';
export { describeCertificate } from './certificate-summary.js';
