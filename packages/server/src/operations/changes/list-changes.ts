import { awaitWithin } from '../../base/await-within.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import { toAsOf } from '../../model/as-of.ts'
import { refuseOperator, requireCollection } from '../../services/access/find-sources.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { openVersions } from '../../services/encryption/read-opened.ts'
import type { Operation } from '../operation.ts'
import { type ChainPosition, type ChangePage, readChanges } from './change-store.ts'

const defaultLimit = 100

/** Answers as soon as there is a change; between two reads it holds nothing but its watch. */
export const listChanges: Operation<
  'listChanges',
  'world' | 'database' | 'tenants' | 'program'
> = async (call, { params, query }) => {
  const { world, database, tenants, program } = call.service
  const since = parsePosition(query.since ?? '0')
  const limit = query.limit ?? defaultLimit
  const waitMs = (query.wait ?? 0) * 1000
  const endMs = world.now() + waitMs
  for (;;) {
    const tenant = await tenants.load(params.app)
    const collection = requireCollection(tenant, params.collection)
    refuseOperator(call.caller, tenant, collection)
    refuseFuture(tenant, since)
    // Begun before the read, so that no change is missed in between.
    const watch = waitMs > 0 ? tenant.data.watchers.begin(collection.id) : undefined
    try {
      const place = { schema: tenant.schema, table: collection.table }
      const read = await readChanges(database, place, { since, limit })
      const page = { ...read, changes: await openVersions(tenant, collection, read.changes) }
      const leftMs = endMs - world.now()
      const isOver = watch === undefined || leftMs <= 0 || program.isDraining()
      if (page.changes.length > 0 || isOver) return new HttpReply(formatReply(page, since))
      await awaitWithin(watch.woken, { world, ms: leftMs, otherwise: undefined })
    } finally {
      watch?.end()
    }
    refuseLapsedCaller(call, params.app, { permission: 'Read' })
  }
}

const positionForm = /^(0|[1-9][0-9]{0,14})(?::(0|[1-9][0-9]{0,8}))?$/

/** `height` or `height:sequence`. */
function parsePosition(text: string): ChainPosition {
  const [, height, sequence] = positionForm.exec(text) ?? []
  if (height === undefined)
    throw makeInvalidFault('/query/since', 'must be height or height:sequence, such as 12 or 12:0')
  return {
    height: Number(height),
    sequence: sequence === undefined ? undefined : Number(sequence),
  }
}

/**
 * A position past the end belongs to another chain (one restored from a copy); its caller would miss what comes
 * now.
 */
function refuseFuture(tenant: Tenant, since: ChainPosition): void {
  const { height } = tenant.chain.head()
  if (since.height > height)
    throw makeInvalidFault(
      '/query/since',
      `is past the end of the chain, whose height is ${height}`,
    )
}

function formatReply({ changes, isCut, asOf }: ChangePage, since: ChainPosition): string {
  const last = changes.at(-1)
  // All up to the watermark was looked at; after a crash of the database it may be behind where the caller is.
  const isBehind = asOf.height <= since.height
  const next = last !== undefined && (isCut || isBehind) ? last : isBehind ? since : asOf
  const texts = changes.map(
    ({ height, sequence, key, deleted, body }) =>
      `{"height":${height},"sequence":${sequence},"key":${JSON.stringify(key)},"deleted":${deleted},"record":${body}}`,
  )
  const as_of = JSON.stringify(toAsOf(asOf.height, asOf.sequence))
  return `{"changes":[${texts.join(',')}],"next":"${formatPosition(next)}","as_of":${as_of}}`
}

function formatPosition(at: { height: number | bigint; sequence: number | undefined }): string {
  return at.sequence === undefined ? String(at.height) : `${at.height}:${at.sequence}`
}
