import { expect } from 'vitest'
import { createData, type Data } from './data.ts'
import type { TestReply, TestService } from './service.ts'

/** Makes the calls that tests of predefined queries need, for an application with the collection `open`. */
export async function createQueryCalls(service: TestService) {
  const data: Data = await createData(service)
  await data.publish('open', [
    { id: 'a', secret: 'xyzzy', '=name': '=1+2', 'two\nlines': 'say "so", then\r\ngo' },
    { id: 'b', secret: null, big: 12345678901234567000, list: [1, '2'] },
  ])
  const define = async (body: object): Promise<TestReply> => {
    const reply = await data.call('POST', '/queries', body)
    expect(reply.status, reply.text).toBe(201)
    return reply
  }
  return {
    data,
    define,
    /** Defines a query that only keys of the application may run. */
    defineClosed: async (name: string) => {
      await data.create({ name: 'closed', access_policy: { read: 'private' } })
      await data.store('closed', [{ id: 'a' }])
      return define({ name, source_collection: 'closed' })
    },
    ask: (
      name: string,
      headers: Readonly<Record<string, string>> = {},
      query = '',
    ): Promise<TestReply> =>
      service.request('GET', `/api/queries/${data.appId}/${name}/data${query}`, { headers }),
  }
}

/** Creates an application with the collection `c`, whose schema declares a number and a date. */
export async function createDeclaredData(service: TestService): Promise<Data> {
  const data = await createData(service)
  await data.create({
    name: 'c',
    access_policy: 'public',
    schema_definition: { fields: { n: { type: 'number' }, at: { type: 'date' } } },
  })
  await data.store('c', [
    { id: 'a', n: 1, g: 'x', at: '2026-01-01T00:00:00Z' },
    { id: 'b', n: 2, g: 'x', at: '2026-02-01T00:00:00Z' },
    { id: 'd', n: 3, g: 'y', at: '2026-03-01T00:00:00Z' },
  ])
  return data
}
