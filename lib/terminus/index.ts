export { type ServiceHealthOptions } from '../engine/health.js';
export { ServiceHealthIndicator } from './service-health.indicator.js';
