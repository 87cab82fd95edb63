import { Fault } from '../../packages/server/src/base/fault.ts'
import { HttpReply } from '../../packages/server/src/http/reply.ts'
import { Pass } from '../../packages/server/src/http/request-context.ts'
import { executeQuery } from '../../packages/server/src/operations/queries/execute-query.ts'
import type { Caller } from '../../packages/server/src/services/access/access.ts'
import { KeptAnswers } from '../../packages/server/src/services/queries/result-cache.ts'
import type { TestApp, TestService } from '../support/service.ts'

export type Asked = {
  readonly app: string
  readonly name: string
  /** In the query string, without `version` and `format`. */
  readonly values: Readonly<Record<string, string>>
  readonly version?: number
  readonly format?: 'json' | 'csv' | 'ndjson'
  /** Whose key is sent; nobody's when not given. */
  readonly by?: TestApp
}

export type Answer = { readonly status: number; readonly text: string }

/** As clients ask. Of what is no answer only the status counts: the rest has times and identities in it. */
export async function askByHttp(service: TestService, asked: Asked): Promise<Answer> {
  const { app, name, by } = asked
  const query = new URLSearchParams(textsOf(asked))
  const path = `/api/queries/${app}/${name}/data?${query}`
  const { status, text } = await service.request('GET', path, by && { headers: by.headers })
  return answerOf(status, text)
}

/** The same operation in the same service, which keeps no answers for it. */
export async function askUncached({ running }: TestService, asked: Asked): Promise<Answer> {
  const { app, name, version, format, by } = asked
  const { service } = running
  const answers = new KeptAnswers({ bytesMax: 0, onLookup: () => undefined })
  const predefined = { ...service.predefined, answers }
  const key = by && service.tenancy.system.keys.find(by.keyHash, service.world.now())
  const caller: Caller = key === undefined ? { kind: 'anonymous' } : { kind: 'key', key }
  const path = `/api/queries/${app}/${name}/data`
  const facts = {
    requestId: 'uncached',
    method: 'GET',
    path,
    url: path,
    queryText: '',
    headers: {},
    params: { app, name },
    query: textsOf(asked),
    bodyBytes: Buffer.alloc(0),
    json: () => ({ text: '', value: undefined }),
    remoteAddress: '127.0.0.1',
    pass: new Pass(0, () => undefined),
  }
  try {
    const reply = await executeQuery(
      { service: { ...service, predefined }, caller, facts },
      {
        params: { app, name },
        query: { ...(version && { version }), ...(format && { format }) },
      },
    )
    if (!(reply instanceof HttpReply)) throw new Error('a query answers by a text')
    return answerOf(reply.status ?? 200, String(reply.text))
  } catch (error) {
    if (error instanceof Fault) return answerOf(error.status, '')
    throw error
  }
}

/** For how long a view has been behind is another time in each run. */
function answerOf(status: number, text: string): Answer {
  return { status, text: status === 200 ? text.replace(/"ms":\d+/, '"ms":0') : '' }
}

function textsOf({ values, version, format }: Asked): Record<string, string> {
  return {
    ...values,
    ...(version && { version: String(version) }),
    ...(format && { format }),
  }
}
