import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import type { Block } from '../../chain/parse-block.ts'
import type { Database } from '../../database/database.ts'
import { readDefinitionLeaf } from '../../projections/definitions/apply-definition.ts'
import type { Tenant } from '../applications/tenants.ts'

/**
 * The task of filling the columns of declared fields that begins with this definition of a collection; undefined where
 * none does, as for a small table, or where another definition took its place.
 */
export async function findColumnTask(
  database: Database,
  tenant: Tenant,
  place: { readonly id: string; readonly block: Block; readonly sequence: number },
): Promise<Static<typeof Task> | undefined> {
  const { block, sequence } = place
  const entry = block.entry(sequence)
  const isOne = entry?.header.type === 'definition' && entry.header.kind === 'collection'
  if (!isOne || entry.body === '') return undefined
  const id = String(entry.header.id)
  const collection = tenant.data.catalog.byId.get(id)
  const progress = collection && tenant.data.findColumnProgress(collection)
  if (collection === undefined || progress === undefined) return undefined
  const leaf = await readDefinitionLeaf(database, tenant.schema, { kind: 'collection', id })
  if (leaf !== block.firstLeaf + sequence) return undefined
  const time = new Date(block.time).toISOString()
  const { fields, percent } = progress
  return {
    ticket_id: place.id,
    status: percent === 100 ? 'Completed' : 'StoringData',
    operation_type: 'fill_columns',
    created_at: time,
    updated_at: time,
    user_address: null,
    transaction_hash: null,
    block_height: block.height,
    progress_log: [
      `began in block ${block.height}`,
      percent === 100
        ? `reads use the columns of ${fields.join(', ')}`
        : `the columns of ${fields.join(', ')} are being filled`,
    ],
    progress: { percent },
  }
}
