import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { DataSetBody } from '../../model/definitions.ts'
import { define } from '../../services/applications/define.ts'
import { parseEntries } from '../../services/data-sets/parse-entries.ts'
import type { Operation } from '../operation.ts'
import { describeDataSet } from './describe-data-set.ts'

export const createDataSet: Operation<'createDataSet', 'world' | 'tenants'> = async (
  { service },
  { params, body },
) => {
  const { name, kind } = body
  const entries = await parseEntries(kind, {
    values: body.entries,
    locate: (at) => `/entries/${at}`,
  })
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { dataSets, nextNumber } = tenant.data.catalog
    const all = [...dataSets.values()]
    const same = all.find((one) => one.name === name)
    if (same === undefined && all.length >= limits.dataSetsPerApplicationMax)
      throw conflict(`An application has at most ${limits.dataSetsPerApplicationMax} data sets`)
    const other = all.find((one) => one.kind === 'ip_country' && one.name !== name)
    if (kind === 'ip_country' && other !== undefined)
      throw conflict(`${other.name} tells countries already; inCountry looks into one data set`)
    const now = new Date(service.world.now()).toISOString()
    const set: DataSetBody = {
      id: same?.id ?? `dset_${service.world.randomBytes(12).toString('hex')}`,
      number: nextNumber,
      name,
      kind,
      public: body.public ?? false,
      count: entries.length,
      created_at: same?.created_at ?? now,
      updated_at: now,
      entries,
    }
    await define(tenant, [{ kind: 'data_set', id: set.id, body: set }])
    return { ...describeDataSet(set), updated: same !== undefined }
  })
}

function conflict(message: string): Fault {
  return new Fault('CONFLICT', { message })
}
