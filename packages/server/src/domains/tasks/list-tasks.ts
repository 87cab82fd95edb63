import type { Operation } from '../operation.ts'
import { sealTicket } from '../records/tickets.ts'
import { storeTask } from './store-task.ts'

const limitDefault = 50

export const listTasks: Operation<'listTasks'> = async ({ service }, { params, query }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const limit = query.limit ?? limitDefault
  const tasks: ReturnType<typeof storeTask>[] = []
  for (let height = tenant.chain.head().height; height > 0 && tasks.length < limit; height--) {
    const block = await tenant.chain.readBlock(height)
    if (block === undefined) break
    for (const [at, sequence] of [...block.groupStarts.entries()].reverse()) {
      if (block.entries[sequence]?.header.type !== 'record' || tasks.length >= limit) continue
      const count = (block.groupStarts[at + 1] ?? block.entries.length) - sequence
      const ticket = { application: tenant.application.number, height, sequence, count }
      tasks.push(
        storeTask(tenant, { id: sealTicket(service.ticketKey, ticket), block, sequence, count }),
      )
    }
  }
  return { tasks, total_tasks: tasks.length }
}
