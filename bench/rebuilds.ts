import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { sql } from '@tollbase/server/database/sql'
import { Client } from 'pg'
import { makeItem } from './documents.ts'
import { configFile, createBareTable, openPlace, type Place, program } from './place.ts'
import { fillLog } from './proofs.ts'
import type { Benchmark } from './report.ts'
import { interleave } from './rounds.ts'

const batchSize = 1000
/** A round takes half a minute and more on each side, so the machine's small disturbances even out within it. */
const roundsMax = 3

/** Compares `tollbase rebuild`, which checks the log and makes the tables anew, with inserting the records alone. */
export const rebuilds: Benchmark = {
  name: 'rebuilds',
  run: async ({ rounds, records }) => {
    const place = await openPlace()
    try {
      await fillLog(place, records)
      const comparison = await interleave({
        rounds: Math.min(rounds, roundsMax),
        ours: () => rebuild(place, records),
        peer: (round) => insertBare(place, { name: `c_${round + 1}`, records }),
      })
      return [
        {
          name: `rebuild of ${records.toLocaleString('en-US')} records`,
          unit: 'records/s',
          target: 0.5,
          comparison,
          note: `the whole command, with the check of the log; peer: one connection that sends batches of ${batchSize}, each one INSERT that the database takes apart, into a table with the same columns and indexes`,
        },
      ]
    } finally {
      await place.close()
    }
  },
}

async function rebuild(place: Place, records: number): Promise<number> {
  const args = ['rebuild', '--config', configFile]
  const startedAt = performance.now()
  await promisify(execFile)(program, [
    ...args,
    ...['--data-dir', place.serviceDir, '--database-url', place.databaseUrl],
  ])
  return (records * 1000) / (performance.now() - startedAt)
}

async function insertBare(
  place: Place,
  { name, records }: { readonly name: string; readonly records: number },
): Promise<number> {
  await createBareTable(place.database, name)
  const client = new Client(place.connection)
  await client.connect()
  let seconds = 0
  for (let at = 0; at < records; at += batchSize) {
    const count = Math.min(batchSize, records - at)
    const items = Array.from({ length: count }, (_, n) => makeItem(at + n, records))
    const text = JSON.stringify(items)
    const startedAt = performance.now()
    await client.query({
      name: 'insert',
      text: `INSERT INTO bare.${name} (leaf, height, sequence, key, deleted, superseded_by, data, body)
        SELECT $1::int8 + at, 1, at::int4, item ->> 'id', false, NULL, item::jsonb, item::text
        FROM json_array_elements($2::json) WITH ORDINALITY AS fresh (item, at)`,
      values: [at, text],
    })
    seconds += (performance.now() - startedAt) / 1000
  }
  await client.end()
  await place.database.execute(sql`DROP TABLE ${sql.id('bare', name)}`)
  return records / seconds
}
