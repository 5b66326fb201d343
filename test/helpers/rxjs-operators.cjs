// The same classes as those of `rxjs`, which jest.config.js maps to one file.
module.exports = require('rxjs').operators;
