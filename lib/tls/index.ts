export { Agents } from './agents.js';
export { certificateRefusedError } from './certificate-refused.js';
export {
  ClientIdentity,
  type ClientIdentitySettings,
  type Identity,
  type IdentityStatus,
} from './client-identity.js';
export { describeCertificate } from './certificate-summary.js';
