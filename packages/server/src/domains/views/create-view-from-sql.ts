import { Fault } from '../../base/fault.ts'
import { viewFromSql } from '../../views/definition/view-from-sql.ts'
import type { Operation } from '../operation.ts'
import { createAndTell } from './created-reply.ts'
import { knownModels } from './read-view.ts'
import { readSettings } from './view-wish.ts'

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
