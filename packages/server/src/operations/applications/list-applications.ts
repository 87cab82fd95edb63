import type { ApplicationRecord } from '../../model/application.ts'
import type { Operation } from '../operation.ts'
import { describeApplication } from './describe-application.ts'

/** Each is opened, where it was not, by a dozen statements and with all of its definitions. */
const describedAtOnce = 4

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
  const describe = (one: ApplicationRecord) =>
    describeApplication(call, one).catch((error: unknown) => {
      // It may have been archived since it was listed.
      const now = service.tenants.system.applications.get(one.app_id)
      if (now?.status === 'archived' && one.status !== 'archived')
        return describeApplication(call, now)
      throw error
    })
  const applications: Awaited<ReturnType<typeof describeApplication>>[] = []
  for (let at = 0; at < own.length; at += describedAtOnce) {
    const some = own.slice(at, at + describedAtOnce)
    applications.push(...(await Promise.all(some.map(describe))))
  }
  return { applications }
}
