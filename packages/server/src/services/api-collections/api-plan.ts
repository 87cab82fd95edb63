import type { ApiParameter } from '@tollbase/contract/api-collections'
import { makeInvalidFault } from '../../base/fault.ts'
import type { ApiDefinition } from '../../model/definitions.ts'
import type { ParameterValue } from '../../query/parameter.ts'
import {
  type GivenArguments,
  readArguments,
  type SentTexts,
} from '../../query/predefined/arguments.ts'
import type { DeclaredParameter } from '../../query/predefined/declared-parameter.ts'
import { readDeclarations } from '../../query/predefined/read-declarations.ts'
import type { UpstreamRequest } from '../../upstream/ask-upstream.ts'
import {
  fillTemplate,
  listPathNames,
  parseUrlTemplate,
  type UrlTemplate,
} from '../../upstream/upstream-url.ts'

/** The definition of an API, ready to make requests. */
export type ApiPlan = {
  readonly template: UrlTemplate
  readonly method: ApiDefinition['method']
  readonly parameters: readonly PlacedParameter[]
}

type Place = NonNullable<ApiParameter['in']>
type PlacedParameter = {
  readonly declared: DeclaredParameter
  readonly place: Place
  /** Its name in the upstream's request. */
  readonly as: string
}

/** Parameters of the endpoint beside those of the API. */
const others: ReadonlySet<string> = new Set(['max_kb', 'api_key'])

type Planned = Pick<ApiDefinition, 'url' | 'method' | 'parameters'>

/** Plans the requests of a definition; 400 names the place where it is wrong. `isStored`: it was taken in once. */
export function planApi({ url, method, parameters }: Planned, isStored = false): ApiPlan {
  const template = parseUrlTemplate(url, '/upstream/url')
  const named = listPathNames(template)
  const declared = readDeclarations(parameters, {
    form: 'request',
    typeOf: () => undefined,
    taken: others,
    isStored,
  })
  const placed = declared.map((one, at): PlacedParameter => {
    const sent = parameters[at]
    const place = sent?.in ?? (named.includes(one.name) ? 'path' : 'query')
    return { declared: one, place, as: sent?.as ?? one.name }
  })
  const names = new Set<string>()
  for (const [at, one] of placed.entries()) {
    const pointer = `/parameters/${at}`
    if (one.place === 'path') checkPathParameter(one, named, pointer)
    else if (named.includes(one.declared.name))
      throw makeInvalidFault(`${pointer}/in`, 'must be path: the url names it')
    if (one.place === 'body' && method !== 'POST')
      throw makeInvalidFault(`${pointer}/in`, 'is body, which only a POST has')
    const name = `${one.place} ${one.as}`
    if (names.has(name) || (one.place === 'query' && template.constants.has(one.as)))
      throw makeInvalidFault(pointer, `is sent as ${one.as}, as another one is`)
    names.add(name)
  }
  const unknown = named.find((name) => !names.has(`path ${name}`))
  if (unknown !== undefined)
    throw makeInvalidFault('/upstream/url', `names {${unknown}}, which is none of the parameters`)
  return { template, method, parameters: placed }
}

function checkPathParameter(
  { declared, as }: PlacedParameter,
  named: readonly string[],
  pointer: string,
): void {
  const { name, isList, required, default: given } = declared
  if (!named.includes(name))
    throw makeInvalidFault(`${pointer}/in`, `is path, but the url does not name {${name}}`)
  if (as !== name) throw makeInvalidFault(`${pointer}/as`, 'is for the query and the body')
  if (isList) throw makeInvalidFault(`${pointer}/type`, 'must be one value in a path')
  if (!required && given === undefined)
    throw makeInvalidFault(`${pointer}/required`, 'must be true in a path, or a default is needed')
}

/** Reads the arguments of a request; a 400 names the one that is wrong. */
export function readApiArguments({ parameters }: ApiPlan, sent: SentTexts): GivenArguments {
  return readArguments(
    parameters.map(({ declared }) => declared),
    sent,
    others,
  )
}

/** Builds the request to the upstream, each value encoded for its place; 400 where a path cannot have a value. */
export function buildUpstreamRequest(
  { template, method, parameters }: ApiPlan,
  given: GivenArguments,
): Omit<UpstreamRequest, 'headers'> {
  const path = new Map<string, string>()
  const query = new URLSearchParams()
  const body: [string, ParameterValue][] = []
  for (const { declared, place, as } of parameters) {
    const value = given.get(declared.name)
    if (value === undefined) continue
    if (place === 'path') path.set(declared.name, String(value))
    else if (place === 'body') body.push([as, value])
    else for (const item of Array.isArray(value) ? value : [value]) query.append(as, String(item))
  }
  return {
    url: template.url,
    method,
    target: fillTemplate(template, { path, query }),
    body: method === 'POST' ? JSON.stringify(Object.fromEntries(body)) : undefined,
  }
}
