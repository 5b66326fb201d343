/**
 * The version of the package. It is a constant because a bundled application has no package.json. `npm version` updates
 * both.
 */
export const VERSION = '0.1.0';

/** The guides of this version. The npm package does not contain them. */
export const GUIDES = 'https://github.com/nestjs-service/nestjs-service/blob/v0.1.0/docs';
