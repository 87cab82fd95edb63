import { Fault } from '../../packages/server/src/base/fault.ts'
import { toJsonSource } from '../../packages/server/src/base/json-source.ts'
import { HttpReply } from '../../packages/server/src/http/reply.ts'
import { RequestContext } from '../../packages/server/src/http/request-context.ts'
import { executeQuery } from '../../packages/server/src/operations/queries/execute-query.ts'
import type { Caller } from '../../packages/server/src/services/access/access.ts'
import { ResultCache } from '../../packages/server/src/services/reading/result-cache.ts'
import type { TestApp, TestService } from '../support/service.ts'

export type Asked = {
  readonly app: string
  readonly name: string
  /** The parameters of the query string, without `version` and `format`. */
  readonly values: Readonly<Record<string, string>>
  readonly version?: number
  readonly format?: 'json' | 'csv' | 'ndjson'
  /** The application whose key is sent; none is sent when this is not given. */
  readonly by?: TestApp
}

export type Answer = { readonly status: number; readonly text: string }

/** Asks as clients do. An error counts by its status only: its body has times and identities in it. */
export async function askByHttp(service: TestService, asked: Asked): Promise<Answer> {
  const { app, name, by } = asked
  const query = new URLSearchParams(toTexts(asked))
  const path = `/api/queries/${app}/${name}/data?${query}`
  const { status, text } = await service.request('GET', path, by && { headers: by.headers })
  return toAnswer(status, text)
}

/** Runs the same operation in the same service, without the result cache. */
export async function askUncached({ running }: TestService, asked: Asked): Promise<Answer> {
  const { app, name, version, format, by } = asked
  const { service } = running
  const resultCache = new ResultCache({ bytesMax: 0, onLookup: () => undefined })
  const key = by && service.tenants.system.keys.find(by.keyHash, service.world.now())
  const caller: Caller = key === undefined ? { kind: 'anonymous' } : { kind: 'key', key }
  const path = `/api/queries/${app}/${name}/data`
  const requestInfo = {
    requestId: 'uncached',
    method: 'GET',
    path,
    url: path,
    queryText: '',
    headers: {},
    params: { app, name },
    query: toTexts(asked),
    bodyBytes: Buffer.alloc(0),
    json: () => ({ source: toJsonSource(''), value: undefined }),
    remoteAddress: '127.0.0.1',
    context: new RequestContext(0, () => undefined),
  }
  try {
    const reply = await executeQuery(
      { service: { ...service, resultCache }, caller, requestInfo },
      {
        params: { app, name },
        query: { ...(version && { version }), ...(format && { format }) },
      },
    )
    if (!(reply instanceof HttpReply)) throw new Error('a query answers by a text')
    return toAnswer(reply.status ?? 200, String(reply.text))
  } catch (error) {
    if (error instanceof Fault) return toAnswer(error.status, '')
    throw error
  }
}

/** The time for which a view has been behind differs in each run. */
function toAnswer(status: number, text: string): Answer {
  return { status, text: status === 200 ? text.replace(/"ms":\d+/, '"ms":0') : '' }
}

function toTexts({ values, version, format }: Asked): Record<string, string> {
  return {
    ...values,
    ...(version && { version: String(version) }),
    ...(format && { format }),
  }
}
