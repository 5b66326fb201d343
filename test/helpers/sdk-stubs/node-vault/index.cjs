/** What the vault holds: path -> data. */
const entries = new Map();

module.exports = function nodeVault({ endpoint }) {
  let isLoggedIn = false;
  return {
    async approleLogin({ role_id, secret_id }) {
      isLoggedIn = [endpoint, role_id, secret_id].every((value) => typeof value === 'string' && value !== '');
    },
    async read(path) {
      if (!isLoggedIn) throw new Error('permission denied');
      return { data: { data: entries.get(path) } };
    },
  };
};
module.exports.entries = entries;
