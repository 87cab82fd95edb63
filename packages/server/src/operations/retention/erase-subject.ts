import { limits } from '@tollbase/contract/limits'
import { awaitWithin } from '../../base/await-within.ts'
import { refuseOperator, requireCollection } from '../../services/access/find-sources.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Uses } from '../../services/call.ts'
import { runExclusively } from '../../services/locks/exclusive-section.ts'
import { eraseExpired, expireListed } from '../../services/retention/expire-versions.ts'
import { findSubjectVersions, type Subject } from '../../services/retention/find-subject.ts'
import type { Operation } from '../operation.ts'

type Parts = Uses<
  'world' | 'log' | 'database' | 'tenants' | 'viewBuilder' | 'recordNameKey' | 'ownsDatabase'
>

/**
 * Erases the records of a subject. Nobody reads them from the first entry on; their bytes follow, by the next sweep
 * where that takes longer. Repeated, it goes on where it was broken off, and finds nothing when all is done.
 */
export const eraseSubject: Operation<
  'eraseSubject',
  'world' | 'log' | 'database' | 'tenants' | 'viewBuilder' | 'recordNameKey' | 'ownsDatabase'
> = async ({ service, caller }, { params, body }) => {
  const tenant = await service.tenants.load(params.app)
  const { id, name } = requireCollection(tenant, params.collection)
  refuseOperator(caller, tenant, requireCollection(tenant, id))
  const subject = { field: body.field, value: String(body.value) }
  const entries = await expire(service, tenant, { id, subject })
  const versions = entries.reduce((sum, one) => sum + one.versions, 0)
  const erasing = eraseExpired(service, tenant).then(() => true)
  const limit = { world: service.world, ms: limits.resealingWaitMs, otherwise: false }
  const isErased = versions === 0 || (await awaitWithin(erasing, limit))
  erasing.catch((error) => service.log.warn({ error }, 'the next sweep erases what has expired'))
  const rest = isErased ? '' : '; their bytes leave the log within minutes'
  return {
    success: true,
    message: `${versions} versions of records of ${name} are erased${rest}`,
    collection: name,
    versions,
    entries: entries.map(({ height, sequence }) => ({ block_height: height, sequence })),
  }
}

type Expired = { readonly height: number; readonly sequence: number; readonly versions: number }

/**
 * Under the mutex of definitions, as everything that makes versions expire or copies them. A batch that has read a
 * record before it expired may write it again: so what came meanwhile is looked at while nobody else writes, which
 * takes a moment however large the collection is.
 */
function expire(
  service: Parts,
  tenant: Tenant,
  { id, subject }: { readonly id: string; readonly subject: Subject },
): Promise<Expired[]> {
  const { world } = service
  return tenant.definitions.run(async () => {
    const { size } = tenant.chain.head()
    // The tables have everything that was acknowledged before this call.
    await tenant.chain.whenApplied(await tenant.chain.flushed())
    const earlier = await expireFound(service, tenant, { id, subject, after: -1 })
    const later = await runExclusively(tenant, { world, collections: [id] }, () =>
      expireFound(service, tenant, { id, subject, after: size - 1 }),
    )
    return [...earlier, ...later]
  })
}

async function expireFound(
  service: Parts,
  tenant: Tenant,
  {
    id,
    subject,
    after,
  }: { readonly id: string; readonly subject: Subject; readonly after: number },
): Promise<Expired[]> {
  const collection = requireCollection(tenant, id)
  const found = await findSubjectVersions(service.database, tenant, { collection, subject, after })
  const entries: Expired[] = []
  for (let at = 0; at < found.length; at += limits.expiryVersionsMax) {
    const versions = found.slice(at, at + limits.expiryVersionsMax)
    const place = await expireListed(service, tenant, { collection: id, versions })
    entries.push({ ...place, versions: versions.length })
  }
  return entries
}
