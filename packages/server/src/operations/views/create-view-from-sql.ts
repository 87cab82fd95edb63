import { Fault } from '../../base/fault.ts'
import { parseViewSql } from '../../views/definition/parse-view-sql.ts'
import type { Operation } from '../operation.ts'
import { createAndDescribe } from './create-and-describe.ts'
import type { DescribeParts } from './describe-view.ts'
import { parseViewSettings } from './parse-view-settings.ts'
import { loadKnownModels } from './resolve-view.ts'

export const createViewFromSql: Operation<
  'createViewFromSql',
  DescribeParts | 'viewBuilder' | 'ticketKey' | 'queryPlans'
> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenants.load(params.app)
  const { name, ifNotExists, orReplace, definition } = await parseViewSql(
    body.sql,
    params.app,
    (models) => loadKnownModels(service.tenants, tenant, models),
  )
  if (ifNotExists && orReplace)
    throw new Fault('VALIDATION_FAILED', { message: '/sql says OR REPLACE and IF NOT EXISTS' })
  return createAndDescribe(call, tenant, {
    name,
    query: definition,
    sources: undefined,
    siblings: {},
    settings: parseViewSettings(body),
    confirmed: body.confirm_free ?? [],
    ifExists: ifNotExists ? 'keep' : orReplace ? 'replace' : 'refuse',
  })
}
