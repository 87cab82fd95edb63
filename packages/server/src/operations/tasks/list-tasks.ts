import { limits } from '@tollbase/contract/limits'
import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import { canRead } from '../../services/access/access.ts'
import { sealTicket, stateAlone } from '../../services/tasks/tickets.ts'
import type { Operation } from '../operation.ts'
import { buildStoreTask } from './build-store-task.ts'
import { findLongTask, isStore } from './find-task.ts'
import { maskTask } from './mask-task.ts'
import { iterateNewestGroups } from './newest-groups.ts'

const limitDefault = 50

export const listTasks: Operation<'listTasks', 'database' | 'tenants' | 'ticketKey'> = async (
  { service, caller, requestInfo },
  { params, query },
) => {
  const tenant = await service.tenants.load(params.app)
  const isReader = canRead(caller, tenant.application)
  const limit = query.limit ?? limitDefault
  const signal = requestInfo.context.getAbortSignal()
  const tasks: Static<typeof Task>[] = []
  let named = 0
  for await (const { block, sequence, count } of iterateNewestGroups(tenant, { signal })) {
    const place = { application: tenant.application.number, height: block.height, sequence }
    // An id that opens the whole task would give away what the list leaves out.
    const ticket = { ...place, count: isReader ? count : stateAlone }
    const group = { id: sealTicket(service.ticketKey, ticket), block, sequence, count }
    const isNamed = isReader && named + count <= limits.taskRecordsListedMax
    const task = isStore(group)
      ? await buildStoreTask(tenant, group, { isNamed })
      : await findLongTask(service, tenant, group)
    if (task === undefined) continue
    if (task.result !== undefined) named += count
    tasks.push(isReader ? task : maskTask(task))
    if (tasks.length >= limit) break
  }
  return { tasks, total_tasks: tasks.length }
}
