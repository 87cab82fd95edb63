import type { Operation } from '../operation.ts'
import { describeApplication } from './describe-application.ts'

export const listApplications: Operation<'listApplications', 'tenants' | 'publishing'> = async (
  call,
) => {
  const { caller, service } = call
  const all = service.tenants.system.applications.list()
  const own = all.filter(
    (one) =>
      caller.kind === 'operator' ||
      (caller.kind === 'wallet' && one.owner_address === caller.address),
  )
  return { applications: await Promise.all(own.map((record) => describeApplication(call, record))) }
}
