import type { Json, TestApp, TestReply, TestService } from './service.ts'

/** Makes the calls that tests need for the records of one application, with its first key. */
export function makeData(service: TestService, app: TestApp) {
  const at = `/api/apps/${app.appId}/collections`
  const ask = (method: string, path: string, body?: unknown): Promise<TestReply> =>
    service.request(method, path, {
      ...(body !== undefined && { body }),
      headers: app.headers,
    })
  return {
    ...app,
    /** Any request under `/api/apps/{app}`. */
    call: (method: string, path: string, body?: unknown) =>
      ask(method, `/api/apps/${app.appId}${path}`, body),
    create: (body: object) => ask('POST', at, body),
    /** Creates a collection that all may read, with these records. */
    publish: async (name: string, data: readonly unknown[]) => {
      const made = await ask('POST', at, { name, access_policy: 'public' })
      if (made.status !== 201) throw new Error(made.text)
      return ask('POST', '/store?wait=true', { root: `${app.appId}::${name}`, data })
    },
    /** Stores records, and waits until the tables show them. */
    store: (collection: string, data: readonly unknown[], more: object = {}) =>
      ask('POST', '/store?wait=true', { root: `${app.appId}::${collection}`, data, ...more }),
    /** Stores records, and answers once they are committed. */
    queue: (collection: string, data: readonly unknown[], more: object = {}) =>
      ask('POST', '/store', { root: `${app.appId}::${collection}`, data, ...more }),
    /** The records' own texts, as a client wrote them. */
    storeText: (collection: string, records: string) =>
      service.request('POST', '/store?wait=true', {
        raw: `{"root":"${app.appId}::${collection}","data":[${records}]}`,
        headers: app.headers,
      }),
    list: (collection: string, query: object = {}) =>
      ask('POST', '/list', { root: `${app.appId}::${collection}`, ...query }),
    /** Sends the request without a key. */
    listOpenly: (collection: string, query: object = {}) =>
      service.request('POST', '/list', { body: { root: `${app.appId}::${collection}`, ...query } }),
    record: (collection: string, key: string, part = '') =>
      ask('GET', `${at}/${collection}/records/${encodeURIComponent(key)}${part}`),
  }
}

export type Data = ReturnType<typeof makeData>

/** Creates an application and the calls for it. */
export async function createData(service: TestService): Promise<Data> {
  return makeData(service, await service.createApp())
}

export function listIds(reply: TestReply): string[] {
  return reply.body.records.map((record: Json) => record.id)
}
