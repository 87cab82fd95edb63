import type { Task } from '@tollbase/contract/storage'
import type { Static } from 'typebox'
import { canRead } from '../../services/access/access.ts'
import { findResealingTask } from '../../services/encryption/resealing-tasks.ts'
import { findColumnTask } from '../../services/tasks/column-task.ts'
import { findMigrationTask } from '../../services/tasks/migration-task.ts'
import { sealTicket, stateAlone } from '../../services/tasks/tickets.ts'
import { findViewTask } from '../../services/tasks/view-task.ts'
import type { Operation } from '../operation.ts'
import { buildStoreTask } from './build-store-task.ts'
import { maskTask } from './mask-task.ts'

const limitDefault = 50

export const listTasks: Operation<'listTasks', 'database' | 'tenants' | 'ticketKey'> = async (
  { service, caller },
  { params, query },
) => {
  const tenant = await service.tenants.load(params.app)
  const isReader = canRead(caller, tenant.application)
  const limit = query.limit ?? limitDefault
  const tasks: Static<typeof Task>[] = []
  for (let height = tenant.chain.head().height; height > 0 && tasks.length < limit; height--) {
    const block = await tenant.chain.readBlock(height)
    if (block === undefined) break
    for (const [at, sequence] of [...block.groupStarts.entries()].reverse()) {
      if (tasks.length >= limit) continue
      const count = (block.groupStarts[at + 1] ?? block.header.entryCount) - sequence
      const place = { application: tenant.application.number, height, sequence }
      // An id that opens the whole task would give away what the list leaves out.
      const ticket = { ...place, count: isReader ? count : stateAlone }
      const group = { id: sealTicket(service.ticketKey, ticket), block, sequence, count }
      // An erased entry was a record.
      const isStore = (block.entry(sequence)?.header.type ?? 'record') === 'record'
      const task = isStore
        ? buildStoreTask(tenant, group)
        : (findMigrationTask(tenant, group) ??
          findResealingTask(tenant, group) ??
          (await findColumnTask(service.database, tenant, group)) ??
          (await findViewTask(service.database, tenant, group)))
      if (task !== undefined) tasks.push(isReader ? task : maskTask(task))
    }
  }
  return { tasks, total_tasks: tasks.length }
}
