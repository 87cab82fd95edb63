import type { Json, TestApp, TestReply, TestService } from './service.ts'

/** What tests do with the records of one application, with its first key. */
export function dataOf(service: TestService, app: TestApp) {
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
    /** Makes a collection that all may read, with these records. */
    publish: async (name: string, data: readonly unknown[]) => {
      const made = await ask('POST', at, { name, access_policy: 'public' })
      if (made.status !== 201) throw new Error(made.text)
      return ask('POST', '/store?wait=true', { root: `${app.appId}::${name}`, data })
    },
    /** Waits until the tables show it. */
    store: (collection: string, data: readonly unknown[], more: object = {}) =>
      ask('POST', '/store?wait=true', { root: `${app.appId}::${collection}`, data, ...more }),
    /** Answers once it is committed. */
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
    /** As someone without a key. */
    listOpenly: (collection: string, query: object = {}) =>
      service.request('POST', '/list', { body: { root: `${app.appId}::${collection}`, ...query } }),
    record: (collection: string, key: string, part = '') =>
      ask('GET', `${at}/${collection}/records/${encodeURIComponent(key)}${part}`),
  }
}

export type Data = ReturnType<typeof dataOf>

/** A new application and what can be done with it. */
export async function newData(service: TestService): Promise<Data> {
  return dataOf(service, await service.createApp())
}

export function idsOf(reply: TestReply): string[] {
  return reply.body.records.map((record: Json) => record.id)
}
