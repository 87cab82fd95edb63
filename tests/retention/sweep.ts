import { expect } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import type { MaintenanceReport } from '../../packages/server/src/operator/maintenance.ts'
import { sweepRetention } from '../../packages/server/src/services/retention/sweep-retention.ts'
import type { Data } from '../support/data.ts'
import type { TestService } from '../support/service.ts'

export const dayMs = 24 * 3600 * 1000

/** Sets the retention of a collection, past the time in which it can be taken back. */
export async function keepFor(service: TestService, app: Data, [name, days]: [string, number]) {
  const body = { retention_days: days }
  const set = await app.call('POST', `/collections/${name}/retention`, body)
  expect(set.status, set.text).toBe(200)
  service.world.advance(3600 * 1000)
}

/** Does what the service does every ten minutes. */
export async function sweep({ running: { service } }: TestService, app: Data): Promise<void> {
  await sweepRetention(service, await service.tenants.load(app.appId))
}

export function auditStopped(service: TestService): Promise<MaintenanceReport> {
  return service.whileStopped((config) => audit(config, () => undefined))
}
