import { recordProofType } from '@tollbase/verify/proof'
import { Fault } from '../../base/fault.ts'
import { collectionOf, refuseOperator } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import { readRecord } from './record-store.ts'

export const getRecordProof: Operation<'getRecordProof'> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const collection = collectionOf(tenant, params.collection)
  refuseOperator(call, collection)
  const { version } = await readRecord(service.database, {
    schema: tenant.schema,
    table: collection.table,
    key: params.key,
  })
  if (version === undefined)
    throw new Fault('RECORD_NOT_FOUND', {
      message: `There is no record ${params.key} in ${collection.name}`,
    })
  const proof = await tenant.chain.prove(Number(version.height), version.sequence)
  return { type: recordProofType, app: params.app, ...proof }
}
