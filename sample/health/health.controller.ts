import { Controller, Get, ServiceUnavailableException } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import { ServiceHealth, type HealthReport } from './service-health.js';

@ApiTags('health')
@Controller('health')
export class HealthController {
  constructor(private readonly health: ServiceHealth) {}

  @Get()
  @ApiOperation({ summary: 'Whether the service answers us, and how long our certificate lasts' })
  @ApiOkResponse({ description: 'It does' })
  @ApiServiceUnavailableResponse({ description: 'It does not, or the certificate has expired' })
  async check(): Promise<HealthReport> {
    const report = await this.health.report();
    if (report.status === 'error') throw new ServiceUnavailableException(report);
    return report;
  }
}
