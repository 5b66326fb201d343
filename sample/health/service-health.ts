import { Injectable } from '@nestjs/common';
import { BanksService, ServiceAuthService, ServiceError } from 'nestjs-service';

/** Milliseconds for which a result is used again without another call. */
const CACHE_MS = 10_000;
/** Milliseconds that a health check waits for the service. */
const TIMEOUT_MS = 3_000;

interface Reachability {
  reachable: boolean;
  checkedAt: string;
  /** The code of the error, where the call failed. */
  code?: string;
}

export interface HealthReport {
  status: 'ok' | 'error';
  service: Reachability;
  /** Absent where no client certificate is configured. */
  certificate?: { daysLeft?: number; validTo: string };
}

/** Whether the service answers us, and how long our certificate lasts. */
@Injectable()
export class ServiceHealth {
  private last?: { at: number; outcome: Promise<Reachability> };

  constructor(
    private readonly banks: BanksService,
    private readonly auth: ServiceAuthService,
  ) {}

  async report(): Promise<HealthReport> {
    const service = await this.reachability();
    const { healthy, certificate, daysLeft } = this.auth.identityStatus;
    return {
      status: service.reachable && healthy ? 'ok' : 'error',
      service,
      certificate: certificate && { daysLeft, validTo: certificate.validTo.toISOString() },
    };
  }

  /** One call of the service for all health checks within CACHE_MS. */
  private reachability(): Promise<Reachability> {
    const now = performance.now();
    if (!this.last || now - this.last.at >= CACHE_MS) this.last = { at: now, outcome: this.callService() };
    return this.last.outcome;
  }

  private async callService(): Promise<Reachability> {
    const checkedAt = new Date().toISOString();
    try {
      await this.banks.list({ timeout: TIMEOUT_MS });
      return { reachable: true, checkedAt };
    } catch (error) {
      return { reachable: false, checkedAt, code: error instanceof ServiceError ? error.code : 'unknown' };
    }
  }
}
