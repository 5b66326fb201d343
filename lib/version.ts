/** The version of the package. In the code, as a bundle has no package.json; `npm run release` sets both. */
export const VERSION = '0.1.0';
