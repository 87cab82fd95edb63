import { sql } from '@tollbase/server/database/sql'
import { verifyDocument } from '@tollbase/verify/verify'
import { makeItem } from './documents.ts'
import { drive, requireNoFailure, sendOnce } from './load.ts'
import { app, openPlace, type Place, startOurs } from './place.ts'
import { makeProgressBar } from './progress.ts'
import { collection, storeItems } from './reads.ts'
import type { Benchmark, Row } from './report.ts'
import { interleave } from './rounds.ts'

const connections = 16
const requestsPerRound = 8_000
const checkedProofs = 20_000

/** Compares a record's proof, over a log that a fresh process has opened, with the free read of the same record. */
export const proofs: Benchmark = {
  name: 'proofs',
  run: async ({ rounds, nodeOptions, records }) => {
    const place = await openPlace()
    try {
      await fillLog(place, records)
      const service = await startOurs(place, { nodeOptions })
      try {
        return await measureProofs({ port: service.port, records, rounds })
      } finally {
        await service.stop()
      }
    } finally {
      await place.close()
    }
  },
}

/** Fills the log of an application by the public interface, and ends the service that took it. */
export async function fillLog(place: Place, records: number): Promise<void> {
  const service = await startOurs(place, { nodeOptions: [] })
  try {
    const onProgress = makeProgressBar('store', records)
    await storeItems(service.port, { total: records, onProgress })
  } finally {
    await service.stop()
  }
  await place.database.execute(sql`VACUUM ANALYZE`)
  await place.database.execute(sql`CHECKPOINT`)
}

async function measureProofs(bench: {
  readonly port: number
  readonly records: number
  readonly rounds: number
}): Promise<Row[]> {
  const { port, records, rounds } = bench
  let drawn = 0
  // The keys are spread over the log, in no order that caches would like.
  const drawKeys = (count: number) =>
    Array.from({ length: count }, () => makeItem((drawn++ * 7919) % records, records).id)
  const run = async (suffix: string) => {
    const requests = drawKeys(requestsPerRound).map((key) => makeGet(key, suffix))
    return requireNoFailure(await drive({ port, connections, requests, status: 200 }))
  }
  const first = await run('/proof')
  await run('')
  const comparison = await interleave({
    rounds,
    ours: async () => (await run('/proof')).perSecond,
    peer: async () => (await run('')).perSecond,
  })
  const checked = await checkProofs(port, drawKeys(checkedProofs))
  const entries = `${records.toLocaleString('en-US')} entries`
  return [
    {
      name: `proof of a record by its key, ${entries}, after a restart, ${connections} connections`,
      unit: 'requests/s',
      target: 0.5,
      comparison,
      note: `peer: the free read of a record by its key, of the same service; the first ${requestsPerRound.toLocaleString('en-US')} proofs of the process: ${Math.round(first.perSecond)} requests/s`,
    },
    {
      name: 'proofs checked by packages/verify',
      unit: '',
      value: `${Math.round(checked).toLocaleString('en-US')} proofs/s`,
      note: `aim 5,000; ${checkedProofs.toLocaleString('en-US')} proofs, as text, with a trusted key, one thread; the signatures of a checkpoint and of ${Math.min(checkedProofs, records / 1000).toLocaleString('en-US')} blocks among them`,
    },
  ]
}

function makeGet(key: string, suffix: string): Buffer {
  const path = `/api/apps/${app}/collections/${collection}/records/${key}${suffix}`
  return Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
}

/** Fetches proofs, and gives how many are checked in a second; each must hold. */
async function checkProofs(port: number, keys: readonly string[]): Promise<number> {
  const texts: string[] = []
  for (const key of keys) texts.push((await sendOnce(port, makeGet(key, '/proof'))).body.toString())
  const trustedKey: string = JSON.parse(texts[0] ?? '').key
  const startedAt = performance.now()
  for (const text of texts)
    if (!verifyDocument(text, { trustedKey }).ok) throw new Error(`a proof does not hold: ${text}`)
  return (texts.length * 1000) / (performance.now() - startedAt)
}
