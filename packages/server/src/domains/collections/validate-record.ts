import { isRecord } from '../../base/is-record.ts'
import type { Operation } from '../operation.ts'
import { readSchema } from './record-schema.ts'
import { collectionOf } from './visibility.ts'

export const validateRecord: Operation<'validateRecord'> = async (
  { service },
  { params, body },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const schema = readSchema(collectionOf(tenant, params.collection).schema_definition)
  const list = Array.isArray(body.data)
  const errors = (Array.isArray(body.data) ? body.data : [body.data]).flatMap(
    (record: unknown, at: number) => {
      const where = list ? `/${at}` : ''
      if (!isRecord(record)) return [`${where === '' ? '/' : where} must be an object`]
      return schema.problems(record).map(({ pointer, problem }) => `${where}${pointer} ${problem}`)
    },
  )
  return errors.length === 0 ? { valid: true } : { valid: false, errors }
}
