import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { Tenants } from '../applications/tenants.ts'
import type { ViewBuilder } from '../views/view-builder.ts'

/** The parts of the service by which views forget what is gone. */
export type ForgetPorts = {
  readonly world: World
  readonly database: Database
  readonly tenants: Tenants
  readonly viewBuilder: ViewBuilder
}
