export { type ServiceHealthOptions, ServiceHealthIndicator } from './service-health.indicator.js';
