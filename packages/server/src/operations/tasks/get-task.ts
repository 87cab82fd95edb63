import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Block } from '../../chain/parse-block.ts'
import { findAnchor } from '../../services/anchoring/prove-anchor.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { openTicket, stateAlone, type Ticket } from '../../services/tasks/tickets.ts'
import type { Operation } from '../operation.ts'
import { buildStoreTask } from './build-store-task.ts'
import { findLongTask, isStore } from './find-task.ts'
import { maskTask } from './mask-task.ts'

const patienceMs = 300

type Needs = 'world' | 'database' | 'tenants' | 'ticketKey'

export const getTask: Operation<'getTask', Needs> = async (
  { service, requestInfo },
  { params },
) => {
  const unknown = new Fault('TASK_NOT_FOUND', { message: `There is no task ${params.id}` })
  const ticket = openTicket(service.ticketKey, params.id)
  const application = ticket && service.tenants.system.applications.findByNumber(ticket.application)
  if (ticket === undefined || application?.status !== 'active') throw unknown
  const tenant = await service.tenants.load(application.app_id)
  const { chain } = tenant
  if (ticket.height > chain.head().height) throw unknown
  await waitShortly(service.world, tenant, ticket.height)
  const held = await chain.holdBlock(ticket.height, requestInfo.context.getAbortSignal())
  if (held === undefined) throw unknown
  const place = { id: params.id, block: held.block, ticket }
  const found = await findTask(service, tenant, place).finally(held.leave)
  if (found === undefined) throw unknown
  const { task, lastLeaf } = found
  const anchor =
    lastLeaf === undefined
      ? undefined
      : await findAnchor(service, { app: application.app_id, leafIndex: lastLeaf })
  const whole = { ...task, ...(anchor && { anchor }) }
  return ticket.count === stateAlone ? maskTask(whole) : whole
}

type Found = {
  readonly task: Static<typeof Task>
  /** That of a store. */
  readonly lastLeaf?: number
}

async function findTask(
  service: Uses<Needs>,
  tenant: Tenant,
  { id, block, ticket }: { readonly id: string; readonly block: Block; readonly ticket: Ticket },
): Promise<Found | undefined> {
  const { sequence } = ticket
  const count = findGroupCount(block.groupStarts, block.header.entryCount, ticket)
  if (count === undefined) return undefined
  const group = { id, block, sequence, count }
  if (isStore(group)) {
    const task = await buildStoreTask(tenant, group)
    return { task, lastLeaf: block.firstLeaf + sequence + count - 1 }
  }
  const task = await findLongTask(service, tenant, group)
  return task && { task }
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
