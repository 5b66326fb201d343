/** The sources of the hosts name their own files with `.js`, which the scaffold's do not. */
module.exports = (options) => ({
  ...options,
  resolve: { ...options.resolve, extensionAlias: { '.js': ['.ts', '.js'] } },
});
