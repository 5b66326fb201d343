import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { HealthCheck, HealthCheckService, type HealthCheckResult } from '@nestjs/terminus';
import { ServiceHealthIndicator } from 'nestjs-service/terminus';

@ApiTags('health')
@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly service: ServiceHealthIndicator,
  ) {}

  /** Reports whether the service answers, and when the client certificate expires. */
  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    return this.health.check([() => this.service.isHealthy('service', { ping: true })]);
  }
}
