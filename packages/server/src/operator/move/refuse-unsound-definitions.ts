import { limits } from '@tollbase/contract/limits'
import { Name } from '@tollbase/contract/schemas'
import { Check } from 'typebox/value'
import { Fault } from '../../base/fault.ts'
import { SetupError } from '../../base/setup-error.ts'
import { type Catalog, findReadableById } from '../../model/catalog.ts'
import { checkSchemaDefinition } from '../../model/check-schema.ts'
import { sumDefinitionBytes } from '../../model/definition-bytes.ts'
import { parseRoot } from '../../model/parse-root.ts'
import { countQueryChars, type KeptQuery } from '../../model/stored-query.ts'
import { planApi } from '../../services/api-collections/api-plan.ts'
import { loadTemplate } from '../../services/queries/query-plans.ts'
import { refuseLongView } from '../../services/views/refuse-long-view.ts'
import { makeUnsoundError } from './unsound-error.ts'

const nameCharsShown = 80

type Place = { readonly app: string; readonly schema: string; readonly catalog: Catalog }

/**
 * Refuses definitions that no request here could have made, and that would harm others: a log from elsewhere may have
 * any. Names get into the ledger, which is the service's own; what is read or written takes the time of all.
 */
export async function refuseUnsoundDefinitions(place: Place): Promise<void> {
  const { collections, views, queries } = place.catalog
  await refuseTooMany(place)
  for (const { name, schema_definition: schema, api } of collections.values()) {
    refuseName('a collection', name)
    const what = `the collection ${name}`
    await check(what, () => checkSchemaDefinition(schema))
    if (api !== undefined) {
      // The values of its headers are longer than they were sent: they are sealed.
      refuseLong(what, countChars(api), 2 * limits.queryDefinitionBytesMax)
      await check(what, () => planApi(api))
    }
  }
  for (const { view, plan } of views.values()) {
    refuseName('a view', view.name)
    const what = `the view ${view.name}`
    const others = [...view.sources, ...view.reads].find(({ app }) => app !== place.app)
    if (others !== undefined || view.app !== place.app)
      throw makeForeignError(what, others?.app ?? view.app)
    if (plan !== undefined) await check(what, () => refuseLongView(place, { view, plan }))
  }
  for (const stored of [...queries.values()].flat()) await refuseUnsoundQuery(place, stored)
  refuseGranted(place.catalog)
}

/** The id of a grantee is a name, which anybody may have here, or register: what was granted would be read by strangers. */
function refuseGranted(catalog: Catalog): void {
  const [grant] = catalog.grants.values()
  if (grant === undefined) return
  const { kind, name } = findReadableById(catalog, grant.source) ?? {
    ...{ kind: 'collection', name: grant.source },
  }
  throw new SetupError(
    `the ${kind} ${name} is granted to the application ${grant.grantee}, which here may be of somebody else: take the grant back at the other service, and export again`,
  )
}

/** A request for a definition that passes the bound would be refused (409); all of them are in memory from now on. */
async function refuseTooMany({ app, catalog }: Place): Promise<void> {
  const bytes = await sumDefinitionBytes(catalog)
  if (bytes > limits.definitionsBytesMax)
    throw makeUnsoundError(
      `the application ${app}`,
      `its definitions take ${bytes} bytes of memory, and may take ${limits.definitionsBytesMax}`,
    )
}

async function refuseUnsoundQuery({ app, catalog }: Place, stored: KeptQuery): Promise<void> {
  refuseName('a query', stored.name)
  const what = `the query ${stored.name}`
  const { sources, version: _, created_at: __, parameters, ...sent } = stored
  refuseLong(what, countQueryChars({ ...sent, ...(parameters.length > 0 && { parameters }) }))
  refuseLong(what, countChars(sources))
  for (const source of sources) refuseOther(what, source)
  await check(what, async () => {
    const findCatalog = async (other: string) => {
      if (other !== app) throw makeForeignError(what, other)
      return catalog
    }
    const text = { text: stored, isStored: true, isBounded: true }
    const { uses } = await loadTemplate(findCatalog, app, text)
    for (const { model } of uses) refuseOther(what, model)
  })

  function refuseOther(query: string, source: string): void {
    const other = source.includes('::') ? parseRoot(source).app : app
    if (other !== app) throw makeForeignError(query, other)
  }
}

function refuseName(what: string, name: string): void {
  if (Check(Name, name)) return
  throw makeUnsoundError(what, `its name is ${JSON.stringify(name).slice(0, nameCharsShown)}`)
}

/** Counts as the requests do, which have less around it than the log. */
function refuseLong(
  what: string,
  chars: number,
  charsMax: number = limits.queryDefinitionBytesMax,
): void {
  if (chars > charsMax) throw makeUnsoundError(what, `it is larger than ${charsMax} characters`)
}

function countChars(definition: object): number {
  return JSON.stringify(definition).length
}

async function check(what: string, work: () => unknown): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (error instanceof Fault) throw makeUnsoundError(what, error.message)
    throw error
  }
}

/**
 * The other application was granted to this one, or sold to its buyers, at the service that it comes from; nobody has
 * granted anything here.
 */
function makeForeignError(what: string, other: string): SetupError {
  return new SetupError(
    `${what} reads the application ${other}, which has granted nothing here: delete it at the other service, and export again`,
  )
}
