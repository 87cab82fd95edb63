import { makeItem, makeStoreBody } from './documents.ts'
import { drive, makeHttpRequest, requireNoFailure } from './load.ts'
import { app, call, createApplication, openPlace, startOurs } from './place.ts'
import type { Benchmark } from './report.ts'
import { interleave } from './rounds.ts'

const batchSize = 1000
const batches = 20

/** Compares a store into an encrypted collection with one into a collection in the clear, by the same service. */
export const encryptedStores: Benchmark = {
  name: 'encrypted-stores',
  run: async ({ rounds, nodeOptions }) => {
    const place = await openPlace()
    const { port, stop } = await startOurs(place, { nodeOptions })
    try {
      const key = await createApplication(port)
      for (const name of ['sealed', 'open'])
        await call(port, `/api/apps/${app}/collections`, { key, body: { name } })
      const body = { action: 'add', collections: ['sealed'] }
      await call(port, `/api/apps/${app}/encryption`, { key, body })
      let stored = 0
      const storeInto = async (name: string) => {
        const requests = Array.from({ length: batches }, () => {
          const items = Array.from({ length: batchSize }, () => makeItem(stored++, 1e6))
          const text = makeStoreBody(`${app}::${name}`, items)
          return makeHttpRequest('/store?wait=true', text, { 'x-app-key': key })
        })
        const load = { port, connections: 1, requests, status: 200 }
        return requireNoFailure(await drive(load)).perSecond * batchSize
      }
      for (const name of ['sealed', 'open']) await storeInto(name)
      return [
        {
          name: 'store into an encrypted collection, batches of 1000, until projected, 1 connection',
          unit: 'records/s',
          target: 0.6,
          comparison: await interleave({
            rounds,
            ours: () => storeInto('sealed'),
            peer: () => storeInto('open'),
          }),
          note: 'peer: a collection in the clear of the same service; neither has indexes',
        },
      ]
    } finally {
      await stop()
      await place.close()
    }
  },
}
