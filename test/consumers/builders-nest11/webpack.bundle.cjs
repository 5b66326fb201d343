const configure = require('./webpack.config.cjs');

const ABSENT = /^(@nestjs\/(microservices|websockets)|@fastify\/(static|view)$)/;

/** Everything in one bundle. It warns of what is not installed; types are checked by the build before. */
module.exports = (options, { IgnorePlugin }) => ({
  ...configure(options),
  externals: [],
  plugins: [new IgnorePlugin({ checkResource: (resource) => ABSENT.test(resource) })],
});
