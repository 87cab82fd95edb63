import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { findAnchor } from '../../services/anchoring/prove-anchor.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { openTicket, stateAlone } from '../../services/tasks/tickets.ts'
import type { Operation } from '../operation.ts'
import { buildStoreTask } from './build-store-task.ts'
import { findLongTask, isStore } from './find-task.ts'
import { maskTask } from './mask-task.ts'

const patienceMs = 300

type Needs = 'world' | 'database' | 'tenants' | 'ticketKey'

export const getTask: Operation<'getTask', Needs> = async ({ service }, { params }) => {
  const unknown = new Fault('TASK_NOT_FOUND', { message: `There is no task ${params.id}` })
  const ticket = openTicket(service.ticketKey, params.id)
  const application = ticket && service.tenants.system.applications.findByNumber(ticket.application)
  if (ticket === undefined || application?.status !== 'active') throw unknown
  const tenant = await service.tenants.load(application.app_id)
  const block = await tenant.chain.readBlock(ticket.height)
  const count = block && findGroupCount(block.groupStarts, block.header.entryCount, ticket)
  if (block === undefined || count === undefined) throw unknown
  const group = { id: params.id, block, sequence: ticket.sequence, count }
  const task = isStore(group)
    ? await findStoreTask(service, tenant, group)
    : await findLongTask(service, tenant, group)
  if (task === undefined) throw unknown
  return ticket.count === stateAlone ? maskTask(task) : task
}

async function findStoreTask(
  service: Uses<Needs>,
  tenant: Tenant,
  group: Parameters<typeof buildStoreTask>[1],
): Promise<Static<typeof Task>> {
  const { block, sequence, count } = group
  await waitShortly(service.world, tenant, block.height)
  const leafIndex = block.firstLeaf + sequence + count - 1
  const anchor = await findAnchor(service, { app: tenant.application.app_id, leafIndex })
  return { ...(await buildStoreTask(tenant, group)), ...(anchor && { anchor }) }
}

/** The tables follow the log within milliseconds; the public clients ask again only after two seconds. */
async function waitShortly(world: World, { chain }: Tenant, height: number): Promise<void> {
  if (chain.watermark().height >= height) return
  const projected = chain.whenApplied(height).catch(() => undefined)
  await Promise.race([projected, world.sleep(patienceMs)])
}

/** Returns the number of entries of the ticket's group; undefined where the block has no such group. */
function findGroupCount(
  starts: readonly number[],
  entryCount: number,
  ticket: { readonly sequence: number; readonly count: number },
): number | undefined {
  const at = starts.indexOf(ticket.sequence)
  if (at < 0) return undefined
  const count = (starts[at + 1] ?? entryCount) - ticket.sequence
  return ticket.count === count || ticket.count === stateAlone ? count : undefined
}
