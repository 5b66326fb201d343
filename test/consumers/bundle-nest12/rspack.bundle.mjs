const ABSENT = /^(@nestjs\/(microservices|websockets)|@fastify\/(multipart|static|view)$)/;

/** Everything in one bundle, but for Node's own modules. It warns of what is not installed. */
export default (options, { IgnorePlugin }) => ({
  ...options,
  externals: [],
  externalsPresets: { node: true },
  plugins: [...options.plugins, new IgnorePlugin({ checkResource: (resource) => ABSENT.test(resource) })],
});
