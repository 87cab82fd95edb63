import { limits } from '@tollbase/contract/limits'
import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { Retention } from '../../model/definitions.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import { define } from '../../services/applications/define.ts'
import { describeRetention } from '../../services/retention/describe-retention.ts'
import type { Operation } from '../operation.ts'

export const setRetention: Operation<'setRetention', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const { world } = service
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { id, collection_type, name } = requireCollection(tenant, params.collection)
    if (collection_type === 'api')
      throw new Fault('CONFLICT', {
        message: `${name} sells answers of an API and keeps no records`,
      })
    const definition = requirePresent(tenant.data.catalog.collections.get(id), 'the collection')
    const { retention: before, ...others } = definition
    const retention = planRetention(before, body.retention_days, world.now())
    const updated_at = new Date(world.now()).toISOString()
    const after = { ...others, ...(retention && { retention }), updated_at }
    await define(tenant, [{ kind: 'collection', id, body: after }])
    const settings = describeRetention(requireCollection(tenant, id), world.now())
    const kept = retention === undefined ? 'for ever' : `for ${retention.days} days`
    return { success: true, message: `Records of ${name} are kept ${kept}`, ...settings }
  })
}

/** A shorter time is in force after a while; a longer one at once, but for what the last change still spares. */
function planRetention(
  before: Retention | undefined,
  days: number | null,
  now: number,
): Retention | undefined {
  if (days === null) return undefined
  if (before?.days === days) return before
  const isShorter = before === undefined || days < before.days
  const spared = before === undefined ? now : Math.max(now, Date.parse(before.effective_at))
  const effective = isShorter ? now + limits.retentionGraceMs : spared
  return { days, effective_at: new Date(effective).toISOString() }
}
