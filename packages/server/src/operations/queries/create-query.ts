import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { checkStorable } from '../../base/json-text.ts'
import { sql } from '../../database/sql.ts'
import { makeJsonReply } from '../../http/reply.ts'
import type { StoredQuery } from '../../model/stored-query.ts'
import { bindSamples } from '../../query/parameter.ts'
import type { DeclaredParameter } from '../../query/predefined/declared-parameter.ts'
import { makeSample } from '../../query/predefined/read-declarations.ts'
import type { Template } from '../../query/predefined/template.ts'
import { refuseLapsedCaller } from '../../services/access/lapsed-caller.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { explainStatement } from '../../services/indexes/explain-statement.ts'
import { isFreedVersion, refuseUnconfirmed } from '../../services/pricing/freed-targets.ts'
import {
  type AuthorizedUses,
  authorizeUses,
  requireFirstSource,
} from '../../services/queries/authorize-query.ts'
import { bindStatement } from '../../services/queries/prepare-query-read.ts'
import { loadTemplate, makeCatalogFinder } from '../../services/queries/query-plans.ts'
import { computeQueryPrice, listOwnUses } from '../../services/queries/query-price.ts'
import { isPublic, requireQuery } from '../../services/queries/stored-queries.ts'
import type { SourceParts } from '../../services/reading/authorize-sources.ts'
import { makeFreeTurn } from '../../services/reading/query-turn.ts'
import { makeReader } from '../../services/reading/run-query.ts'
import type { Operation } from '../operation.ts'
import { describeQuery } from './describe-query.ts'

export const createQuery: Operation<
  'createQuery',
  SourceParts | 'queryRunner' | 'queryPlans'
> = async (call, { params, body }) => {
  const { service } = call
  const { confirm_free: confirmed = [], ...definition } = body
  const tenant = await service.tenants.load(params.app)
  if (JSON.stringify(body).length > limits.queryDefinitionBytesMax)
    throw makeInvalidFault('', `is larger than ${limits.queryDefinitionBytesMax} bytes`)
  checkStorable(body, '')
  for (const [name, amount] of Object.entries(body.price ?? {}))
    if (BigInt(amount ?? 0) > limits.amountAtomicMax)
      throw makeInvalidFault(`/price/${name}`, `must be at most ${limits.amountAtomicMax}`)
  return tenant.definitions.run(async () => {
    refuseLapsedCaller(call, params.app, { permission: 'Admin' })
    const version = chooseVersion(tenant, body)
    const text = { ...definition, parameters: body.parameters ?? [] }
    const template = await loadTemplate(makeCatalogFinder(service.tenants), params.app, {
      text,
      isStored: false,
    })
    const authorized = await authorizeUses(call, tenant, template.uses)
    requireFirstSource(authorized.sources)
    const stored: StoredQuery = {
      ...text,
      version,
      sources: listSourceNames(template, params.app),
      created_at: new Date(service.world.now()).toISOString(),
    }
    refusePrivate(tenant, stored)
    refuseUnsellable(tenant, stored, template)
    const own = listOwnUses(template.uses, params.app)
    if (await isFreedVersion(call, tenant, { stored, own }))
      refuseUnconfirmed([{ query: stored.name }], confirmed)
    await planAll(call, tenant, { template, ...authorized })
    await define(tenant, [{ kind: 'query', id: `${stored.name}@${version}`, body: stored }])
    const found = requireQuery(tenant.data.catalog, stored.name, version)
    return makeJsonReply(await describeQuery(call, tenant, found), { status: 201 })
  })
}

function chooseVersion(
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

/** Lists the sources, each once; the application's own by their names alone. */
function listSourceNames({ uses }: Template, app: string): readonly string[] {
  const own = `${app}::`
  const names = uses.map(({ model }) => (model.startsWith(own) ? model.slice(own.length) : model))
  return [...new Set(names)]
}

function refusePrivate({ data: { catalog } }: Tenant, stored: StoredQuery): void {
  if (stored.public !== true || isPublic(catalog, { stored, newest: stored })) return
  throw makeInvalidFault(
    '/public',
    'cannot be true of a query over a private collection or view; what is "key" can be published',
  )
}

/** A query that is offered to others must have a price, or sources that are free or may be derived from. */
function refuseUnsellable(tenant: Tenant, stored: StoredQuery, { uses }: Template): void {
  const { catalog } = tenant.data
  const app = tenant.application.app_id
  if (!isPublic(catalog, { stored, newest: stored })) return
  if (computeQueryPrice(catalog, stored, listOwnUses(uses, app)) !== undefined) return
  const names = stored.sources.filter((name) => !name.includes('::')).join(', ')
  throw new Fault('DERIVATION_DENIED', {
    message: `${names} has a price and does not allow derivation: give the query a price of its own (a price of 0 makes it free), or set derive in the access policy`,
    details: { collection: names },
  })
}

/** Has PostgreSQL plan the statements that may be run, so that no mistake is left for callers. */
async function planAll(
  call: Call<'world' | 'queryRunner'>,
  { application }: Tenant,
  { template, sources }: AuthorizedUses & { readonly template: Template },
): Promise<void> {
  const reader = makeReader(call.service.queryRunner, makeFreeTurn(call, application.app_id))
  const isLeftOut = ({ required, default: given }: DeclaredParameter) =>
    !required && given === undefined
  const least = template.parameters.filter((one) => !isLeftOut(one))
  const plan = { template, own: [], statements: new Map(), number: 0 }
  for (const parameters of new Set([template.parameters, least])) {
    const given = new Map(parameters.map((one) => [one.name, makeSample(one)] as const))
    const run = { given, limit: undefined, offset: 0 }
    const size = { limit: undefined, bytesMax: limits.resultBytesMax, total: false }
    const now = call.service.world.now()
    const { text, values } = bindStatement(plan, { run, size, sources, now, bind: bindSamples })
    await explainStatement(reader, sql.compiled(text, values))
  }
}
