import { listDefaults } from '@tollbase/contract/permissions'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { makeKey } from '../../services/keys/key-record.ts'
import type { Operation } from '../operation.ts'

export const createApplication: Operation<'createApplication', 'world' | 'tenants'> = async (
  { service, caller },
  { body },
) => {
  const { tenants, world } = service
  const { applications, chain, definitions } = tenants.system
  const appId = body.app_id ?? `app_${world.randomBytes(8).toString('hex')}`
  if (appId === 'system')
    throw new Fault('APPLICATION_EXISTS', {
      message: 'The id system is taken by the service itself',
    })
  const owner =
    caller.kind === 'wallet' ? caller.address : (body.owner_address?.toLowerCase() ?? null)
  if (body.owner_address !== undefined && owner !== body.owner_address.toLowerCase()) {
    throw makeInvalidFault('/owner_address', 'must be the address that signed the request')
  }
  return definitions.run(async () => {
    if (applications.get(appId) !== undefined) {
      throw new Fault('APPLICATION_EXISTS', { message: `There is an application ${appId} already` })
    }
    const record: ApplicationRecord = {
      app_id: appId,
      number: applications.getNextNumber(),
      name: body.name,
      description: body.description ?? null,
      owner_address: owner,
      created_at: new Date(world.now()).toISOString(),
      status: 'active',
    }
    const key = makeKey(service.world, {
      appId,
      name: 'default',
      permissions: listDefaults('isInFirstKey'),
      payLimits: null,
      expiresAt: null,
    })
    const { height } = await chain.append([
      { header: { type: 'application', app: appId }, body: JSON.stringify(record) },
      { header: { type: 'key', app: appId }, body: JSON.stringify(key.record) },
    ])
    await chain.whenApplied(height)
    await tenants.load(appId)
    return {
      app_id: appId,
      name: record.name,
      owner_address: owner,
      created_at: record.created_at,
      app_key: key.text,
      key_hash: key.record.key_hash,
    }
  })
}
