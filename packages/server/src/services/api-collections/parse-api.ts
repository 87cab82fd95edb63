import type { Tollbase } from '@tollbase/contract/contract'
import { limits } from '@tollbase/contract/limits'
import type { Input } from '@tollbase/contract/route'
import { makeInvalidFault } from '../../base/fault.ts'
import { checkStorable } from '../../base/json-text.ts'
import type { ApiDefinition } from '../../model/definitions.ts'
import { extendPointer } from '../../query/field-path.ts'
import { findHostProblem } from '../../upstream/upstream-url.ts'
import type { Uses } from '../call.ts'
import { buildUpstreamRequest, planApi } from './api-plan.ts'
import { sealHeaders } from './header-secrets.ts'

type Settings = Input<Tollbase['updateApiCollection']>['body']

/** The definition of an API, which is whole once its headers are sealed for a collection. */
export type ParsedApi = (place: {
  readonly app: string
  readonly collection: string
}) => ApiDefinition

/**
 * Headers that are about one connection or about the body, or that would lead the request to another host or its
 * answer into another form.
 */
const ownHeaders: ReadonlySet<string> = new Set([
  ...[
    'host',
    'connection',
    'keep-alive',
    'proxy-connection',
    'proxy-authorization',
    'te',
    'trailer',
  ],
  ...[
    'transfer-encoding',
    'upgrade',
    'expect',
    'content-length',
    'content-encoding',
    'content-type',
  ],
  ...['accept-encoding', 'range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since'],
  ...['if-unmodified-since', 'idempotency-key'],
])

/** Parses the settings of an API collection; 400 names the place where they are wrong. */
export function parseApi(
  { world, upstreams }: Uses<'world' | 'upstreams'>,
  body: Settings,
): ParsedApi {
  if (JSON.stringify(body).length > limits.queryDefinitionBytesMax)
    throw makeInvalidFault('', `is larger than ${limits.queryDefinitionBytesMax} bytes`)
  checkStorable(body, '')
  const { url, method = 'GET', headers = {} } = body.upstream
  const parameters = body.parameters ?? []
  const plan = planApi({ url, method, parameters })
  const problem = findHostProblem(plan.template.url, upstreams.allowed)
  if (problem !== undefined) throw makeInvalidFault('/upstream/url', problem)
  checkDefaults(plan)
  const named = parseHeaders(headers)
  const { origin } = plan.template.url
  return (place) => ({
    url,
    method,
    headers: sealHeaders({ key: upstreams.headerKey, world }, named, { ...place, origin }),
    parameters,
    cache_seconds: body.cache_seconds ?? 0,
    description: body.description ?? null,
  })
}

/** A default is for the path as a caller's value is. */
function checkDefaults(plan: ReturnType<typeof planApi>): void {
  const isInPath = ({ place }: (typeof plan.parameters)[number]) => place === 'path'
  const given = new Map(
    plan.parameters
      .filter(isInPath)
      .map(({ declared }) => [declared.name, declared.default ?? 'x'] as const),
  )
  buildUpstreamRequest(plan, given)
}

function parseHeaders(sent: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(sent)
  if (entries.length > limits.upstreamHeadersMax)
    throw makeInvalidFault(
      '/upstream/headers',
      `has more than ${limits.upstreamHeadersMax} headers`,
    )
  const named = new Map<string, string>()
  for (const [sentName, value] of entries) {
    const pointer = extendPointer('/upstream/headers', sentName)
    const name = sentName.toLowerCase()
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/.test(name))
      throw makeInvalidFault(pointer, 'must have a name of 1-100 letters, digits and - _')
    if (ownHeaders.has(name)) throw makeInvalidFault(pointer, 'is set by this service alone')
    if (named.has(name)) throw makeInvalidFault(pointer, 'is set twice')
    if (!/^[\x20-\x7e]*$/.test(value) || value !== value.trim())
      throw makeInvalidFault(pointer, 'must be printable ASCII without spaces around it')
    named.set(name, value)
  }
  return Object.fromEntries(named)
}
