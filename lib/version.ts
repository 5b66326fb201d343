/** The version of the package. In the code, as a bundle has no package.json; `npm version` sets both. */
export const VERSION = '0.1.0';

/** Where the guides of this version stand: the package has none in it. */
export const GUIDES = 'https://github.com/nestjs-service/nestjs-service/blob/v0.1.0/docs';
