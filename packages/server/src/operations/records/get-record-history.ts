import { Fault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import { toAsOf } from '../../model/as-of.ts'
import { refuseOperator, requireCollection } from '../../services/access/find-sources.ts'
import { readOpenedHistory } from '../../services/encryption/read-opened.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { findExpired } from '../../services/retention/expired-records.ts'
import type { Operation } from '../operation.ts'

export const getRecordHistory: Operation<
  'getRecordHistory',
  'database' | 'tenants' | 'recordNameKey' | 'queryRunner'
> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const collection = requireCollection(tenant, params.collection)
  refuseOperator(call.caller, tenant, collection)
  const record = { collection, key: params.key }
  const turn = makeFreeTurn(call, params.app)
  const { asOf, versions } = await readOpenedHistory(service, tenant, { ...record, turn })
  const places = new Set(versions.map(({ height, sequence }) => `${height}:${sequence}`))
  // Those that were named a moment ago are in the table still.
  const expired = (await findExpired(service, tenant, record)).filter(
    ({ height, sequence }) => !places.has(`${height}:${sequence}`),
  )
  if (versions.length + expired.length === 0)
    throw new Fault('RECORD_NOT_FOUND', {
      message: `There is no record ${params.key} in ${collection.name}`,
    })
  const texts = [
    ...expired.map(
      ({ height, sequence, leaf_hash }) =>
        `{"record":null,"block_height":${height},"sequence":${sequence},"deleted":false,"expired":true,"leaf_hash":"${leaf_hash}"}`,
    ),
    ...versions.map(
      ({ body, height, sequence, deleted }) =>
        `{"record":${body},"block_height":${height},"sequence":${sequence},"deleted":${deleted}}`,
    ),
  ]
  const as_of = JSON.stringify(toAsOf(asOf.as_of_height, asOf.as_of_sequence))
  return new HttpReply(`{"versions":[${texts.join(',')}],"as_of":${as_of}}`)
}
