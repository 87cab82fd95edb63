import type { PredefinedQuery } from '@tollbase/contract/queries'
import type { Static } from 'typebox'
import { wrapJsonText } from '../../base/wrap-json-text.ts'
import { freePrice } from '../../model/policy.ts'
import { canDescribe } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { computeQueryPrice } from '../../services/queries/query-price.ts'
import { isPublic, type QueryLookup } from '../../services/queries/stored-queries.ts'

export type QueryDescription = Static<typeof PredefinedQuery>

/** Describes a query as the caller may see it: its text is for callers that may Read the application. */
export async function describeQuery(
  call: Call<'tenants' | 'queryPlans'>,
  tenant: Tenant,
  found: QueryLookup,
): Promise<QueryDescription> {
  const { stored, versions } = found
  const { service, caller, requestInfo } = call
  const { app_id: app } = tenant.application
  const { catalog } = tenant.data
  const { request, response } = stored.exampleTexts ?? {}
  const {
    parameters,
    columns,
    own: uses,
  } = await service.queryPlans.loadFacts(service.tenants, tenant, {
    stored,
    onRead: requestInfo.context.noteRead,
  })
  const own = computeQueryPrice(catalog, stored, uses)
  const { perAccess, perRow, perKb } = own?.price ?? freePrice
  return {
    name: stored.name,
    version: stored.version,
    versions: versions.map(({ version, created_at }) => ({ version, created_at })),
    description: stored.description ?? null,
    public: isPublic(catalog, found),
    parameters: parameters.map((declared) => describeParameter(declared, stored.parameters)),
    columns: columns === undefined ? null : [...columns],
    price: {
      per_access: String(perAccess),
      per_row: String(perRow),
      per_kb: String(perKb),
      explicit: own?.explicit ?? false,
    },
    rate_limit: stored.rate_limit ?? null,
    quote: stored.quote ?? 'request',
    min_group_size: stored.min_group_size ?? null,
    sources: [...stored.sources],
    endpoint: `/api/queries/${app}/${stored.name}/data`,
    documentation: `/docs/queries/${app}/${stored.name}`,
    ...(request !== undefined && { example_request: wrapJsonText(request) }),
    ...(response !== undefined && { example_response: wrapJsonText(response) }),
    ...(canDescribe(caller, tenant.application) && getQueryText(found)),
    created_at: stored.created_at,
  }
}

type Parameter = QueryDescription['parameters'][number]

/** Describes a parameter as it is in force: with its resolved type, its default, and whether it is required. */
function describeParameter(
  declared: {
    readonly name: string
    readonly type: NonNullable<Parameter['items']>
    readonly isList: boolean
    readonly default: unknown
    readonly required: boolean
  },
  sent: readonly Parameter[],
): Parameter {
  const { name, type, isList, required } = declared
  const own = sent.find((one) => one.name === name)
  return {
    ...own,
    name,
    ...(isList ? { type: 'list', items: type } : { type }),
    ...(declared.default !== undefined && { default: declared.default }),
    required: required && declared.default === undefined,
  }
}

function getQueryText({ stored: { sql, source_collection, base_query } }: QueryLookup) {
  return {
    ...(sql !== undefined && { sql }),
    ...(source_collection !== undefined && { source_collection }),
    ...(base_query !== undefined && { base_query }),
  }
}
