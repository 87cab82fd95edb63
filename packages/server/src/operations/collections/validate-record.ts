import { limits } from '@tollbase/contract/limits'
import { isRecord } from '../../base/is-record.ts'
import { openRecordJudge } from '../../model/record-schema.ts'
import { requireCollection } from '../../services/access/find-sources.ts'
import type { Operation } from '../operation.ts'

export const validateRecord: Operation<'validateRecord', 'tenants'> = async (
  { service },
  { params, body },
) => {
  const tenant = await service.tenants.load(params.app)
  const schema = openRecordJudge(requireCollection(tenant, params.collection).schema_definition)
  const list: readonly unknown[] = Array.isArray(body.data) ? body.data : [body.data]
  const errors: string[] = []
  for (const [at, record] of list.entries()) {
    const where = list === body.data ? `/${at}` : ''
    if (!isRecord(record)) errors.push(`${where === '' ? '/' : where} must be an object`)
    else
      for (const { pointer, problem } of await schema.listProblems(record))
        errors.push(`${where}${pointer} ${problem}`)
    if (errors.length >= limits.schemaProblemsMax) break
  }
  return errors.length === 0
    ? { valid: true }
    : { valid: false, errors: errors.slice(0, limits.schemaProblemsMax) }
}
