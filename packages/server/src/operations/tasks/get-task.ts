import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { findAnchor } from '../../services/anchoring/prove-anchor.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { findResealingTask } from '../../services/encryption/resealing-tasks.ts'
import { findColumnTask } from '../../services/tasks/column-task.ts'
import { findMigrationTask } from '../../services/tasks/migration-task.ts'
import { openTicket } from '../../services/tasks/tickets.ts'
import { findViewTask } from '../../services/tasks/view-task.ts'
import type { Operation } from '../operation.ts'
import { buildStoreTask } from './store-task.ts'

const patienceMs = 300

export const getTask: Operation<'getTask', 'world' | 'database' | 'tenants' | 'ticketKey'> = async (
  { service },
  { params },
) => {
  const unknown = new Fault('TASK_NOT_FOUND', { message: `There is no task ${params.id}` })
  const ticket = openTicket(service.ticketKey, params.id)
  const application = ticket && service.tenants.system.applications.findByNumber(ticket.application)
  if (ticket === undefined || application?.status !== 'active') throw unknown
  const tenant = await service.tenants.load(application.app_id)
  const block = await tenant.chain.readBlock(ticket.height)
  if (block === undefined || !isGroup(block.groupStarts, block.header.entryCount, ticket))
    throw unknown
  const migration = findMigrationTask(tenant, { id: params.id, block, sequence: ticket.sequence })
  if (migration !== undefined) return migration
  const place = { id: params.id, block, sequence: ticket.sequence }
  const resealing = findResealingTask(tenant, place)
  if (resealing !== undefined) return resealing
  const columns = await findColumnTask(service.database, tenant, place)
  if (columns !== undefined) return columns
  const view = await findViewTask(service.database, tenant, {
    id: params.id,
    block,
    sequence: ticket.sequence,
  })
  if (view !== undefined) return view
  await waitShortly(service.world, tenant, ticket.height)
  const { sequence, count } = ticket
  const leafIndex = block.firstLeaf + sequence + count - 1
  const anchor = await findAnchor(service, { app: application.app_id, leafIndex })
  const task = buildStoreTask(tenant, { id: params.id, block, sequence, count })
  return { ...task, ...(anchor && { anchor }) }
}

/** The tables follow the log within milliseconds; the public clients ask again only after two seconds. */
async function waitShortly(world: World, { chain }: Tenant, height: number): Promise<void> {
  if (chain.watermark().height >= height) return
  const projected = chain.whenApplied(height).catch(() => undefined)
  await Promise.race([projected, world.sleep(patienceMs)])
}

function isGroup(
  starts: readonly number[],
  entryCount: number,
  ticket: { sequence: number; count: number },
): boolean {
  const at = starts.indexOf(ticket.sequence)
  return at >= 0 && (starts[at + 1] ?? entryCount) - ticket.sequence === ticket.count
}
