import { requirePresent } from '../../base/assert.ts'
import { requireApi } from '../../services/access/find-sources.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { parseApi } from '../../services/api-collections/parse-api.ts'
import { define } from '../../services/applications/define.ts'
import type { Operation } from '../operation.ts'
import { describeApi } from './describe-api.ts'

export const updateApiCollection: Operation<
  'updateApiCollection',
  'world' | 'tenants' | 'upstreams'
> = async (call, { params, body }) => {
  const { service, caller } = call
  const parsed = parseApi(service, body)
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin' })
    const { id } = requireApi(tenant, params.name)
    const before = requirePresent(tenant.data.catalog.collections.get(id), 'the collection')
    const updated_at = new Date(service.world.now()).toISOString()
    const api = parsed({ app: params.app, collection: id })
    await define(tenant, [{ kind: 'collection', id, body: { ...before, api, updated_at } }])
    return describeApi(caller, tenant, requireApi(tenant, id))
  })
}
