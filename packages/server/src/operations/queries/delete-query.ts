import { listRuleRemovals } from '../../model/orphaned-rules.ts'
import { define } from '../../services/applications/define.ts'
import { requireQuery } from '../../services/queries/stored-queries.ts'
import type { Operation } from '../operation.ts'

export const deleteQuery: Operation<'deleteQuery', 'tenants'> = async (
  { service },
  { params, query },
) => {
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { catalog } = tenant.data
    const { stored, versions } = requireQuery(catalog, params.name, query.version)
    const gone = query.version === undefined ? versions : [stored]
    const removals = gone.map(
      ({ name, version }) =>
        ({ kind: 'query', id: `${name}@${version}`, body: undefined }) as const,
    )
    await define(tenant, [...removals, ...listRuleRemovals(catalog, removals)])
    const what = query.version === undefined ? '' : `Version ${query.version} of `
    return {
      success: true,
      message: `${what}${what === '' ? 'Query' : 'query'} ${params.name} is deleted`,
    }
  })
}
