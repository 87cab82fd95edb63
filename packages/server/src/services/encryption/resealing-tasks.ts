import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import { requirePresent } from '../../base/assert.ts'
import type { Block } from '../../chain/parse-block.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import { readResealingLeaf } from '../../projections/reseal.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Uses } from '../call.ts'
import { sealTicket } from '../tasks/tickets.ts'

/** A change of a collection's encryption that has not ended. */
export type ResealingTask = {
  readonly collection: string
  readonly action: 'add' | 'remove'
  readonly task_id: string
}

/** Lists the changes of these collections that have not ended. */
export async function listResealingTasks(
  { database, ticketKey }: Uses<'database' | 'ticketKey'>,
  { application, chain, data, schema }: Tenant,
  ids: readonly string[],
): Promise<ResealingTask[]> {
  const tasks: ResealingTask[] = []
  for (const id of ids) {
    const [now, collection] = [data.catalog.resealings.get(id), data.catalog.byId.get(id)]
    if (now === undefined || collection === undefined || now.state === 'completed') continue
    const leaf = now.from ?? (await readResealingLeaf(database, schema, id))
    const { height, sequence } = await chain.locate(leaf)
    const block = requirePresent(await chain.readOutline(height), 'the block of a change')
    const start = block.groupStarts.findLast((one) => one <= sequence) ?? 0
    const end = block.groupStarts.find((one) => one > sequence) ?? block.header.entryCount
    const place = { height, sequence: start, count: end - start }
    const task_id = sealTicket(ticketKey, { application: application.number, ...place })
    tasks.push({ collection: collection.name, action: now.action, task_id })
  }
  return tasks
}

type GroupPlace = { readonly block: Block; readonly sequence: number; readonly count: number }

/** The task of the change of encryption that begins with this group of entries; undefined where it begins none. */
export function findResealingTask(
  tenant: Tenant,
  place: GroupPlace & { readonly id: string },
): Static<typeof Task> | undefined {
  const { block } = place
  const begun = findBegun(place)
  if (begun?.state !== 'copying') return undefined
  const newest = tenant.data.catalog.resealings.get(begun.collection)
  const now = newest?.id === begun.id ? newest : undefined
  const progress = tenant.resealing.get(begun.collection)
  const isUnderWay = now !== undefined && now.state !== 'completed'
  const { done, total, fileBytes, problem } = progress ?? { done: 0, total: 0, fileBytes: 0 }
  const log = [`began in block ${block.height}`]
  if (now?.state === 'copying') log.push(`${done} of about ${total} versions copied`)
  if (now !== undefined && now.state !== 'copying')
    log.push(`the collection is ${now.action === 'add' ? 'encrypted' : 'not encrypted'} now`)
  if (now?.state === 'copying' && fileBytes > 0) log.push(`${fileBytes} bytes of files made`)
  if (now?.state === 'erasing')
    log.push(
      now.action === 'add'
        ? 'its plaintext is being erased from the log'
        : 'the files from before are being removed',
    )
  if (isUnderWay && problem !== undefined) log.push(`waits: ${problem}`)
  return {
    ticket_id: place.id,
    status: now === undefined || now.state === 'completed' ? 'Completed' : 'StoringData',
    operation_type: begun.action === 'add' ? 'encrypt' : 'decrypt',
    created_at: begun.started_at,
    updated_at: now?.ended_at ?? begun.started_at,
    user_address: null,
    transaction_hash: null,
    block_height: block.height,
    progress_log: log,
    progress: {
      percent: isUnderWay ? Math.min(99, Math.floor((100 * done) / Math.max(total, 1))) : 100,
      ...(isUnderWay && { done, total: Math.max(total, done), unit: 'records' }),
    },
  }
}

/** The wish that the collection be queryable goes before the beginning of its change, in the same group. */
function findBegun({ block, sequence, count }: GroupPlace): ResealingDefinition | undefined {
  const entries = [block.entry(sequence), count > 1 ? block.entry(sequence + 1) : undefined]
  const entry = entries.find(
    (one) => one?.header.type === 'definition' && one.header.kind === 'resealing',
  )
  return entry === undefined || entry.body === '' ? undefined : JSON.parse(entry.body)
}
