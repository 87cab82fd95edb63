import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { makeJsonReply } from '../../http/reply.ts'
import { parseApi } from '../../services/api-collections/parse-api.ts'
import { createCollectionLocked } from '../../services/collections/new-collection.ts'
import type { Operation } from '../operation.ts'
import { describeApi } from './describe-api.ts'

export const createApiCollection: Operation<
  'createApiCollection',
  'world' | 'tenants' | 'upstreams'
> = async ({ service, caller }, { params, body }) => {
  const { name, read, price, ...settings } = body
  for (const [part, amount] of Object.entries(price ?? {}))
    if (BigInt(amount ?? 0) > limits.amountAtomicMax)
      throw makeInvalidFault(`/price/${part}`, `must be at most ${limits.amountAtomicMax}`)
  const parsed = parseApi(service, settings)
  const tenant = await service.tenants.load(params.app)
  const collection = await tenant.definitions.run(() =>
    createCollectionLocked(service.world, tenant, {
      name,
      collection_type: 'api',
      access_policy: { ...(read !== undefined && { read }), ...(price && { price }) },
      makeApi: (id) => parsed({ app: params.app, collection: id }),
    }),
  )
  return makeJsonReply(describeApi(caller, tenant, collection), { status: 201 })
}
