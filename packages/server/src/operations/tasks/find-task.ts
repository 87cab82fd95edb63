import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { findResealingTask } from '../../services/encryption/resealing-tasks.ts'
import { findColumnTask } from '../../services/tasks/column-task.ts'
import { findMigrationTask } from '../../services/tasks/migration-task.ts'
import { findViewTask } from '../../services/tasks/view-task.ts'
import type { Group } from './newest-groups.ts'

/** Says that a group of entries is a store. */
export function isStore({ block, sequence }: Group): boolean {
  // An erased entry was a record.
  return (block.entry(sequence)?.header.type ?? 'record') === 'record'
}

/** The task that begins with a group which is no store; undefined where none does (any more). */
export async function findLongTask(
  { database }: Uses<'database'>,
  tenant: Tenant,
  group: Group & { readonly id: string },
): Promise<Static<typeof Task> | undefined> {
  return (
    (await findMigrationTask(database, tenant, group)) ??
    findResealingTask(tenant, group) ??
    (await findColumnTask(database, tenant, group)) ??
    (await findViewTask(database, tenant, group))
  )
}
