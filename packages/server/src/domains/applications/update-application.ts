import type { Call } from '../call.ts'
import type { Operation } from '../operation.ts'
import type { ApplicationRecord } from '../tenancy/applications.ts'
import { applicationView } from './application-view.ts'

export const updateApplication: Operation<'updateApplication'> = async (call, { params, body }) => {
  const record = await changeApplication(call, params.app, {
    ...(body.name !== undefined && { name: body.name }),
    ...(body.description !== undefined && { description: body.description }),
    ...(body.owner_address !== undefined && { owner_address: body.owner_address.toLowerCase() }),
  })
  return applicationView(call, record)
}

/** Writes an application's new state and waits until it is in force. */
export async function changeApplication(
  call: Call,
  appId: string,
  change: Partial<ApplicationRecord>,
): Promise<ApplicationRecord> {
  const { tenancy } = call.service
  return tenancy.system.definitions.run(async () => {
    const record = { ...tenancy.application(appId), ...change }
    const { height } = await tenancy.system.chain.append([
      { header: { type: 'application', app: appId }, body: JSON.stringify(record) },
    ])
    await tenancy.system.chain.whenApplied(height)
    return record
  })
}
