import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { checkStorable } from '../../base/json-text.ts'
import { sql } from '../../database/sql.ts'
import { jsonReply } from '../../http/reply.ts'
import type { StoredQuery } from '../../model/definitions.ts'
import { bindSamples } from '../../query/parameter.ts'
import type { Declared } from '../../query/predefined/declared-parameter.ts'
import { sampleOf } from '../../query/predefined/read-declarations.ts'
import type { Template } from '../../query/predefined/template.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Call } from '../../services/call.ts'
import { planOf } from '../../services/indexes/explain-statement.ts'
import { firstSource, type JudgedUses, judgeUses } from '../../services/queries/authorize-query.ts'
import { statementOf } from '../../services/queries/prepare-query-read.ts'
import { templateOf } from '../../services/queries/query-plans.ts'
import { ownUses, queryPriceOf } from '../../services/queries/query-price.ts'
import { findQuery, isPublic } from '../../services/queries/stored-queries.ts'
import type { Operation } from '../operation.ts'
import { queryView } from './describe-query.ts'

export const createQuery: Operation<'createQuery'> = async (call, { params, body }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  checkStorable(body, '')
  if (JSON.stringify(body).length > limits.queryDefinitionBytesMax)
    throw invalid('', `is larger than ${limits.queryDefinitionBytesMax} bytes`)
  for (const [name, amount] of Object.entries(body.price ?? {}))
    if (BigInt(amount ?? 0) > limits.amountAtomicMax)
      throw invalid(`/price/${name}`, `must be at most ${limits.amountAtomicMax}`)
  return tenant.definitions.run(async () => {
    const version = nextVersion(tenant, body)
    const text = { ...body, parameters: body.parameters ?? [] }
    const template = await templateOf(service.tenancy, params.app, text)
    const judged = await judgeUses(call, tenant, template.uses)
    firstSource(judged.sources)
    const stored: StoredQuery = {
      ...text,
      version,
      sources: sourcesOf(template, params.app),
      created_at: new Date(service.world.now()).toISOString(),
    }
    refusePrivate(tenant, stored)
    refuseUnsellable(tenant, stored, template)
    await planAll(call, template, judged)
    await define(tenant, [{ kind: 'query', id: `${stored.name}@${version}`, body: stored }])
    const found = findQuery(tenant.data.catalog, stored.name, version)
    return jsonReply(await queryView(call, tenant, found), { status: 201 })
  })
}

function nextVersion(
  tenant: Tenant,
  { name, version }: { readonly name: string; readonly version?: number },
): number {
  const { queries } = tenant.data.catalog
  const versions = queries.get(name) ?? []
  if (versions.length === 0 && queries.size >= limits.queriesPerApplicationMax)
    throw new Fault('CONFLICT', {
      message: `There are ${limits.queriesPerApplicationMax} queries, as many as an application may have`,
    })
  if (versions.length >= limits.queryVersionsMax)
    throw new Fault('CONFLICT', {
      message: `${name} has ${limits.queryVersionsMax} versions, as many as a query may have; delete old ones`,
    })
  const newest = versions.at(-1)?.version ?? 0
  if (version !== undefined && version <= newest)
    throw new Fault('CONFLICT', {
      message: `The newest version of ${name} is ${newest}; another one must be higher`,
      details: { newest },
    })
  return version ?? newest + 1
}

/** Each once; those of the application itself by their names alone. */
function sourcesOf({ uses }: Template, app: string): readonly string[] {
  const own = `${app}::`
  const names = uses.map(({ model }) => (model.startsWith(own) ? model.slice(own.length) : model))
  return [...new Set(names)]
}

function refusePrivate({ data: { catalog } }: Tenant, stored: StoredQuery): void {
  if (stored.public !== true || isPublic(catalog, { stored, newest: stored })) return
  throw invalid(
    '/public',
    'cannot be true of a query over a private collection or view; what is "key" can be published',
  )
}

/** What is offered to others must have a price, or sources that have none or may be derived from. */
function refuseUnsellable(tenant: Tenant, stored: StoredQuery, { uses }: Template): void {
  const { catalog } = tenant.data
  const app = tenant.application.app_id
  if (!isPublic(catalog, { stored, newest: stored })) return
  if (queryPriceOf(catalog, stored, ownUses(uses, app)) !== undefined) return
  const names = stored.sources.filter((name) => !name.includes('::')).join(', ')
  throw new Fault('DERIVATION_DENIED', {
    message: `${names} has a price and does not allow derivation: give the query a price of its own (a price of 0 makes it free), or set derive in the access policy`,
    details: { collection: names },
  })
}

/** PostgreSQL plans what may be run, so that no mistake is left for those who ask. */
async function planAll(call: Call, template: Template, { sources }: JudgedUses): Promise<void> {
  const isLeftOut = ({ required, default: given }: Declared) => !required && given === undefined
  const least = template.parameters.filter((one) => !isLeftOut(one))
  const plan = { template, own: [], statements: new Map(), number: 0 }
  for (const parameters of new Set([template.parameters, least])) {
    const given = new Map(parameters.map((one) => [one.name, sampleOf(one)] as const))
    const run = { given, limit: undefined, offset: 0 }
    const size = { limit: undefined, bytesMax: limits.resultBytesMax, total: false }
    const now = call.service.world.now()
    const { text, values } = statementOf(plan, { run, size, sources, now, bind: bindSamples })
    await planOf(call.service.database, sql.compiled(text, values))
  }
}
