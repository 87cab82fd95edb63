import { limits } from '@tollbase/contract/limits'
import { awaitWithin } from '../../base/await-within.ts'
import { makeSourceName } from '../../model/source-names.ts'
import { listWithReplaced } from '../../projections/subject-versions.ts'
import { checkText } from '../../query/operand.ts'
import { refuseOperator, requireCollection } from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { runExclusively } from '../../services/locks/exclusive-section.ts'
import { dropRepliesWith } from '../../services/payments/claims/reply-store.ts'
import { dropNamedAnswers } from '../../services/requests/named-request-store.ts'
import {
  deleteExpired,
  eraseDeleted,
  expireListed,
  expiryVersionsMax,
} from '../../services/retention/expire-versions.ts'
import { findSubjectLeaves, type Subject } from '../../services/retention/find-subject.ts'
import type { Operation } from '../operation.ts'

type Parts = Uses<
  'world' | 'log' | 'database' | 'tenants' | 'viewBuilder' | 'recordNameKey' | 'ownsDatabase'
>

/**
 * Erases the records of a subject. Once this answers nobody can read them. Their bytes are removed afterwards, by the
 * next sweep if it takes longer. A repeated call continues where the last one was interrupted, and finds nothing
 * once all is done.
 */
export const eraseSubject: Operation<
  'eraseSubject',
  'world' | 'log' | 'database' | 'tenants' | 'viewBuilder' | 'recordNameKey' | 'ownsDatabase'
> = async ({ service, caller }, { params, body }) => {
  const tenant = await service.tenants.load(params.app)
  const { id, name } = requireCollection(tenant, params.collection)
  refuseOperator(caller, tenant, requireCollection(tenant, id))
  const subject = {
    field: checkText(body.field, '/field'),
    value: checkText(String(body.value), '/value'),
  }
  const damaged = new Set<number>()
  const tellDamaged = (leaf: number) => damaged.add(leaf)
  const entries = await expire(service, tenant, { id, subject, tellDamaged })
  const versions = entries.reduce((sum, one) => sum + one.versions, 0)
  await dropReplies(service, tenant, { id, subject })
  // A call that was broken off may have left rows that history and changes still show.
  const expiries = await deleteExpired(service, tenant)
  // Answers that were on their way are charged for by then.
  const erasing = eraseDeleted(service, tenant, expiries)
    .then(() => dropReplies(service, tenant, { id, subject }))
    .then(() => true)
  const limit = { world: service.world, ms: limits.resealingWaitMs, otherwise: false }
  const isErased = await awaitWithin(erasing, limit)
  erasing.catch((error) => service.log.warn({ error }, 'the next sweep erases what has expired'))
  // The answer of this call is kept later.
  await dropNamedAnswers(service.database, params.app)
  const rest = isErased ? '' : '; their bytes leave the log within minutes'
  const erased =
    versions === 1
      ? `1 version of a record of ${name} is erased`
      : `${versions} versions of records of ${name} are erased`
  return {
    success: true,
    message: `${erased}${rest}${describeDamaged(damaged.size)}`,
    collection: name,
    versions,
    ...(damaged.size > 0 && { unopened_versions: damaged.size }),
    entries: entries.map(({ height, sequence }) => ({ block_height: height, sequence })),
  }
}

function describeDamaged(versions: number): string {
  if (versions === 0) return ''
  return `; ${versions} versions do not open, so nobody can say whose they are: let the operator run tollbase audit and rebuild, then erase again`
}

type Erasure = {
  readonly id: string
  readonly subject: Subject
  readonly tellDamaged: (leaf: number) => void
}
type Expired = { readonly height: number; readonly sequence: number; readonly versions: number }

/**
 * First searches the whole collection without a lock. Then it searches only the versions that came meanwhile, under the
 * mutex of definitions, which everything that expires or copies versions takes. A batch may have read a record before
 * it expired and write it again, so the last search runs while nobody else writes.
 */
async function expire(service: Parts, tenant: Tenant, erasure: Erasure): Promise<Expired[]> {
  const { world } = service
  const { id } = erasure
  const found: number[] = []
  let after = -1
  const { number } = requireCollection(tenant, id)
  for (let look = 0; look < looksMax; look++) {
    const { size } = tenant.chain.head()
    // The tables have everything that was acknowledged before this call.
    await tenant.chain.whenApplied(await tenant.chain.flushed())
    found.push(...(await findLeaves(service, tenant, { ...erasure, after, number })))
    after = size - 1
  }
  const earlier = await expireFound(service, tenant, { id, leaves: found })
  const later = await tenant.definitions.run(async () => {
    // The records are in another table, and perhaps in another form, than where they were looked for.
    const isMoved = requireCollection(tenant, id).number !== number
    const search = { ...erasure, after: isMoved ? -1 : after }
    return runExclusively(tenant, { world, collections: [id] }, async () => {
      const collection = requireCollection(tenant, id)
      const leaves = await findSubjectLeaves(service.database, tenant, { ...search, collection })
      return expireLocked(service, tenant, { id, leaves })
    })
  })
  return [...earlier, ...later]
}

/** Nobody gets the subject's records again by a repeated payment: answers with records of the collection go. */
function dropReplies(
  { database }: Parts,
  { application: { app_id: app } }: Tenant,
  { id, subject }: Pick<Erasure, 'id' | 'subject'>,
): Promise<void> {
  const source = makeSourceName(app, id)
  return dropRepliesWith(database, { app, source, text: JSON.stringify(subject.value) })
}

/** The second look finds what came while the first one was made, which may have taken long. */
const looksMax = 2

/** None where the collection gets another table meanwhile: then the last look is at all of it. */
async function findLeaves(
  service: Parts,
  tenant: Tenant,
  search: Erasure & { readonly after: number; readonly number: number },
): Promise<number[]> {
  const isMoved = () => requireCollection(tenant, search.id).number !== search.number
  if (isMoved()) return []
  const collection = requireCollection(tenant, search.id)
  try {
    return await findSubjectLeaves(service.database, tenant, { ...search, collection })
  } catch (error) {
    if (isMoved()) return []
    throw error
  }
}

/** Lets the versions expire with all that they replaced, the oldest first; definitions may change between the parts. */
async function expireFound(
  service: Parts,
  tenant: Tenant,
  found: { readonly id: string; readonly leaves: readonly number[] },
): Promise<Expired[]> {
  const entries: Expired[] = []
  for (;;) {
    const some = await tenant.definitions.run(() =>
      expireLocked(service, tenant, { ...found, partsMax: 1, isBegun: entries.length > 0 }),
    )
    if (some.length === 0) return entries
    entries.push(...some)
  }
}

async function expireLocked(
  service: Parts,
  tenant: Tenant,
  found: {
    readonly id: string
    readonly leaves: readonly number[]
    readonly partsMax?: number
    /** Some have expired already. */
    readonly isBegun?: boolean
  },
): Promise<Expired[]> {
  const { id, leaves, partsMax = Number.POSITIVE_INFINITY, isBegun = false } = found
  if (leaves.length === 0) return []
  const { table } = requireCollection(tenant, id)
  const { schema, data } = tenant
  const place = { schema, table, hasExpired: data.hasExpired || isBegun }
  const versions = await listWithReplaced(service.database, place, leaves)
  const entries: Expired[] = []
  for (let at = 0; at < versions.length && entries.length < partsMax; at += expiryVersionsMax) {
    const part = versions.slice(at, at + expiryVersionsMax)
    const { height, sequence } = await expireListed(service, tenant, {
      collection: id,
      versions: part,
    })
    entries.push({ height, sequence, versions: part.length })
  }
  return entries
}
