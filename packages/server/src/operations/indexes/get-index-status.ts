import { readStats } from '../../projections/collection-store.ts'
import { getIndexName } from '../../projections/index-ddl.ts'
import { type BuildProgress, readBuildProgress } from '../../services/indexes/index-store.ts'
import type { Operation } from '../operation.ts'
import { getIndexState } from './describe-index.ts'
import { requireNamedIndex } from './require-index.ts'

export const getIndexStatus: Operation<
  'getIndexStatus',
  'database' | 'tenants' | 'indexBuilder'
> = async ({ service }, { params }) => {
  const tenant = await service.tenants.load(params.app)
  const { schema } = tenant
  const { collection, index } = requireNamedIndex(tenant, params)
  const status = getIndexState(service.indexBuilder, tenant, index)
  const work =
    status === 'building'
      ? await readBuildProgress(service.database, { schema, name: getIndexName(index) })
      : undefined
  // An exact fraction would tell how many pages the table has, which some callers may not know.
  const done = work === undefined ? 0 : Math.floor(100 * estimateDone(work)) / 100
  const progress = status === 'active' ? 1 : done
  const stats = (await readStats(service.database, schema)).get(collection.id)
  const rows = stats?.documents ?? 0
  const trouble = service.indexBuilder.findTrouble(schema, index)
  return {
    status,
    building: status === 'building',
    progress,
    rows_done: Math.floor(rows * progress),
    rows_total: rows,
    ...(trouble !== undefined && { error: trouble.text }),
    created_at: index.created_at,
  }
}

/**
 * Estimates progress from the phases that PostgreSQL reports (manual, "CREATE INDEX Progress Reporting"), each with
 * an assumed share.
 */
function estimateDone({ phase, ...work }: BuildProgress): number {
  const part = (done: bigint, total: bigint) =>
    total === 0n ? 0 : Math.min(Number(done) / Number(total), 1)
  const blocks = part(work.blocksDone, work.blocksTotal)
  if (phase.startsWith('building index')) {
    const isLoading = work.tuplesTotal > 0n
    return isLoading ? 0.5 + 0.3 * part(work.tuplesDone, work.tuplesTotal) : 0.5 * blocks
  }
  if (phase === 'initializing' || phase === 'waiting for writers before build') return 0
  if (phase.startsWith('waiting for writers')) return 0.8
  if (phase.includes('scanning index')) return 0.8 + 0.1 * blocks
  if (phase.includes('scanning table')) return 0.9 + 0.09 * blocks
  return phase.includes('sorting') ? 0.9 : 0.99
}
