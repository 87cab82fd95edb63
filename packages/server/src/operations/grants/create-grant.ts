import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { GrantDefinition } from '../../model/definitions.ts'
import { refuseWhileReplaced } from '../../model/dependents.ts'
import { findDerivePrice } from '../../model/find-price.ts'
import { findGrant } from '../../model/grants.ts'
import type { Readable } from '../../model/readable.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Operation } from '../operation.ts'
import { describeGrant } from './describe-grant.ts'

export const createGrant: Operation<'createGrant', 'world' | 'tenants'> = async (
  call,
  { params, body },
) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const { app_id: grantee } = service.tenants.requireApplication(body.grantee)
  if (grantee === params.app) throw makeInvalidFault('/grantee', 'needs no grant: it is the owner')
  return tenant.definitions.run(async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin' })
    const { catalog } = tenant.data
    const source = requireSource(tenant, body)
    refuseWhileReplaced(catalog, source)
    const amount = body.per_access ?? null
    if (amount === null && findDerivePrice(catalog, source) === undefined)
      throw makeInvalidFault(
        '/per_access',
        `is needed: ${source.name} has a price and no derive price`,
      )
    if (amount !== null && BigInt(amount) > limits.amountAtomicMax)
      throw makeInvalidFault('/per_access', `must be at most ${limits.amountAtomicMax}`)
    const known = findGrant(catalog, source, grantee)
    if (known === undefined && catalog.grants.size >= limits.grantsPerApplicationMax)
      throw new Fault('CONFLICT', {
        message: `An application gives at most ${limits.grantsPerApplicationMax} grants`,
      })
    const grant: GrantDefinition = {
      id: known?.id ?? `grant_${service.world.randomBytes(12).toString('hex')}`,
      grantee,
      source: source.id,
      per_access: amount === null ? null : String(amount),
      created_at: known?.created_at ?? new Date(service.world.now()).toISOString(),
    }
    await define(tenant, [{ kind: 'grant', id: grant.id, body: grant }])
    return describeGrant(tenant.data.catalog, grant)
  })
}

type GrantTarget = { readonly collection?: string | null; readonly view?: string | null }

function requireSource(tenant: Tenant, { collection, view }: GrantTarget): Readable {
  const [first, second] = [collection ?? undefined, view ?? undefined]
  if (first !== undefined && second !== undefined)
    throw makeInvalidFault('/view', 'cannot be combined with collection; grant one at a time')
  if (first !== undefined) return requireCollection(tenant, first)
  if (second === undefined) throw makeInvalidFault('/collection', 'or view is needed')
  const { viewsByName, viewsById } = tenant.data.catalog
  const found = viewsById.get(second) ?? viewsByName.get(second)
  if (found === undefined)
    throw new Fault('VIEW_NOT_FOUND', { message: `There is no view ${second}` })
  return found
}
