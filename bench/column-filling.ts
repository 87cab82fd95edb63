import { setTimeout } from 'node:timers/promises'
import { makeItem, makeStoreBody } from './documents.ts'
import { drive, makeHttpRequest, requireNoFailure } from './load.ts'
import { app, call, createApplication, openPlace, startOurs } from './place.ts'
import type { Benchmark } from './report.ts'
import { interleave } from './rounds.ts'

const batchSize = 1000
/** A collection that is filled for longer than a round takes. */
const recordsMax = 150_000
/** The fields that each round declares. */
const fields = [
  { city: { type: 'string' }, price: { type: 'number' } },
  { title: { type: 'string' }, active: { type: 'boolean' } },
  {
    stock: {
      type: 'object',
      properties: { count: { type: 'number' }, warehouse: { type: 'string' } },
    },
  },
]
const stores = 1_000

/** Measures what stores wait for while the columns of newly declared fields are filled in the same collection. */
export const columnFilling: Benchmark = {
  name: 'column-filling',
  run: async ({ rounds, records, nodeOptions }) => {
    const place = await openPlace()
    const { port, stop } = await startOurs(place, { nodeOptions })
    const count = Math.min(records, recordsMax)
    try {
      const key = await createApplication(port)
      await call(port, `/api/apps/${app}/collections`, { key, body: { name: 'items' } })
      let stored = 0
      const request = (size: number) => {
        const items = Array.from({ length: size }, () => makeItem(stored++, count))
        const text = makeStoreBody(`${app}::items`, items)
        return makeHttpRequest('/store?wait=true', text, { 'x-app-key': key })
      }
      const fill = Array.from({ length: count / batchSize }, () => request(batchSize))
      requireNoFailure(await drive({ port, connections: 4, requests: fill, status: 200 }))
      const ask = async (method: string, path: string, body?: object) => {
        const reply = await fetch(`http://127.0.0.1:${port}/api/apps/${app}${path}`, {
          method,
          headers: { 'x-app-key': key, 'content-type': 'application/json' },
          ...(body && { body: JSON.stringify(body) }),
        })
        if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`)
        return reply.json()
      }
      // The tasks of newer stores come first in the list.
      let task = ''
      const readTask = async () => {
        if (task !== '') return (await ask('GET', `/../../../task/${task}`)) as Task
        const { tasks } = (await ask('GET', '/tasks?limit=1000')) as { tasks: readonly Task[] }
        const found = tasks.find((one) => one.operation_type === 'fill_columns')
        task = found?.ticket_id ?? ''
        return found
      }
      const awaitTask = async () => {
        while ((await readTask())?.status !== 'Completed') await setTimeout(200)
      }
      const storeNow = async () => {
        const requests = Array.from({ length: stores }, () => request(1))
        const load = { port, connections: 4, requests, status: 200, everyMs: 10 }
        return requireNoFailure(await drive(load)).p95
      }
      await storeNow()
      const seconds: number[] = []
      const declared: object[] = []
      const comparison = await interleave({
        rounds: Math.min(rounds, fields.length),
        ours: async (round) => {
          declared.push(fields[round] ?? {})
          const schema_definition = { properties: Object.assign({}, ...declared) }
          await ask('PUT', '/collections/items', { schema_definition })
          const startedAt = performance.now()
          task = ''
          await readTask()
          const p95 = await storeNow()
          if ((await readTask())?.status === 'Completed')
            throw new Error('the columns were whole before the round had ended')
          await awaitTask()
          seconds.push((performance.now() - startedAt) / 1000)
          return p95 * 1000
        },
        peer: async () => (await storeNow()) * 1000,
      })
      const took = seconds.map((each) => each.toFixed(0)).join(', ')
      return [
        {
          name: `p95 of single stores, until projected, while two columns of their collection are filled (ours), and in quiet (peer), ${count.toLocaleString('en-US')} records, 4 connections`,
          unit: 'µs',
          most: 1.5,
          comparison,
          note: `each connection stores one record each 10 ms; the columns were whole after ${took} s`,
        },
      ]
    } finally {
      await stop()
      await place.close()
    }
  },
}

type Task = {
  readonly ticket_id: string
  readonly operation_type: string
  readonly status: unknown
}
