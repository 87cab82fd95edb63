import { Fault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import { toAsOf } from '../../model/as-of.ts'
import { refuseOperator, requireCollection } from '../../services/access/authorize-collections.ts'
import { readOpenedHistory } from '../../services/encryption/read-opened.ts'
import type { Operation } from '../operation.ts'

export const getRecordHistory: Operation<'getRecordHistory', 'database' | 'tenants'> = async (
  call,
  { params },
) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const collection = requireCollection(tenant, params.collection)
  refuseOperator(call.caller, tenant, collection)
  const { asOf, versions } = await readOpenedHistory(service.database, tenant, {
    collection,
    key: params.key,
  })
  if (versions.length === 0)
    throw new Fault('RECORD_NOT_FOUND', {
      message: `There is no record ${params.key} in ${collection.name}`,
    })
  const texts = versions.map(
    (version) =>
      `{"record":${version.body},"block_height":${version.height},"sequence":${version.sequence},"deleted":${version.deleted}}`,
  )
  const as_of = JSON.stringify(toAsOf(asOf.as_of_height, asOf.as_of_sequence))
  return new HttpReply(`{"versions":[${texts.join(',')}],"as_of":${as_of}}`)
}
