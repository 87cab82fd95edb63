import { Fault } from '../../base/fault.ts'
import { viewFromSql } from '../../views/definition/parse-view-sql.ts'
import type { Operation } from '../operation.ts'
import { createAndTell } from './create-and-describe.ts'
import { readSettings } from './parse-view-settings.ts'
import { knownModels } from './resolve-view.ts'

export const createViewFromSql: Operation<'createViewFromSql'> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const { name, ifNotExists, orReplace, definition } = await viewFromSql(
    body.sql,
    params.app,
    (models) => knownModels(service, tenant, models),
  )
  if (ifNotExists && orReplace)
    throw new Fault('VALIDATION_FAILED', { message: '/sql says OR REPLACE and IF NOT EXISTS' })
  return createAndTell(call, tenant, {
    name,
    query: definition,
    sources: undefined,
    siblings: {},
    settings: readSettings(body),
    ifExists: ifNotExists ? 'keep' : orReplace ? 'replace' : 'refuse',
  })
}
