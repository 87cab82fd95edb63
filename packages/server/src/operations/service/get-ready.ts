import { limits } from '@tollbase/contract/limits'
import { awaitWithin } from '../../base/await-within.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { makeJsonReply } from '../../http/reply.ts'
import type { Uses } from '../../services/call.ts'
import type { Operation } from '../operation.ts'

/** Time after which a silent database counts as not ready. */
const readyWaitMs = 2_000
/** Time that the storage counts as full or read only after it refused a block and took no later one. */
const readyStorageMs = 30_000

/** Anybody may ask, so the answer names kinds of trouble and never an application. */
export const getReady: Operation<
  'getReady',
  'world' | 'database' | 'tenants' | 'program' | 'freeSpace'
> = async ({ service }) => {
  const { tenants, program } = service
  const isBehind = tenants
    .listChains()
    .some(
      (chain) => chain.lag() > limits.readyLagEntriesMax || chain.lagMs() > limits.readyLagMsMax,
    )
  const checks = {
    database: (await isAnswering(service)) ? 'ok' : 'unreachable',
    system_chain: tenants.system.chain.failure === undefined ? 'ok' : 'stopped',
    appliers: isBehind ? 'behind' : 'ok',
    storage: getStorageState(service),
    draining: program.isDraining() ? 'yes' : 'no',
  }
  const ready =
    checks.database === 'ok' &&
    checks.system_chain === 'ok' &&
    checks.appliers === 'ok' &&
    checks.storage === 'ok' &&
    checks.draining === 'no'
  return makeJsonReply(
    { ready, checks },
    ready ? {} : { status: 503, headers: { 'retry-after': '1' } },
  )
}

/**
 * Returns the state of the disk: our own is measured; a server elsewhere is judged by its last refusal of a block.
 */
function getStorageState({
  tenants,
  freeSpace,
  world,
}: Uses<'world' | 'tenants' | 'freeSpace'>): 'ok' | 'full' | 'read_only' {
  if (freeSpace?.isShort() === true) return 'full'
  const refusals = tenants.listChains().flatMap(({ storageRefusal }) => storageRefusal ?? [])
  const isNew = ({ atMs }: { atMs: number }) => world.now() - atMs < readyStorageMs
  const newest = refusals.filter(isNew).at(-1)
  if (newest === undefined) return 'ok'
  return newest.code === 'STORAGE_FULL' ? 'full' : 'read_only'
}

const asked = new WeakMap<Database, Promise<boolean>>()

/**
 * Returns whether the database answers. However many callers ask, one query runs at a time, and its wait is
 * bounded.
 */
function isAnswering({ database, world }: Uses<'world' | 'database'>): Promise<boolean> {
  const running = asked.get(database)
  if (running !== undefined) return running
  const question = database.query(sql`SELECT 1 AS one`).then(
    () => true,
    () => false,
  )
  const answer = awaitWithin(question, { world, ms: readyWaitMs, otherwise: false }).finally(() =>
    asked.delete(database),
  )
  asked.set(database, answer)
  return answer
}
