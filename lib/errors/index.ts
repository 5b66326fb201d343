export * from './api.error.js';
export * from './clean-text.js';
export * from './configuration.error.js';
export * from './call.errors.js';
export * from './service.error.js';
export * from './explain.js';
