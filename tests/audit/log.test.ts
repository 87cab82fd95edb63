import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { logNothing, nameTable, openPlace, type Place } from './place.ts'

let place: Place
beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place?.close())

/** Cuts a chain behind a block, with all that its log's tables have of later blocks. */
async function cut(database: Database, schema: string, height: number): Promise<void> {
  await database.execute(sql.compiled(`DELETE FROM ${schema}.block WHERE height > ${height}`, []))
  await setBack(database, schema, height)
}

/** The tables of a chain as they were at a block. */
async function setBack(database: Database, schema: string, height: number): Promise<void> {
  const run = (text: string) => database.execute(sql.compiled(text, []))
  await run(`UPDATE ${schema}.watermark SET height = last.height, sequence = last.entry_count - 1, leaf = last.first_leaf + last.entry_count
    FROM (SELECT * FROM ${schema}.block WHERE height = ${height}) AS last`)
  if (schema !== 'system') return
  for (const table of ['sale', 'sold', 'settled_payment', 'posting'])
    await run(`DELETE FROM system.${table} WHERE leaf >= (SELECT leaf FROM system.watermark)`)
  // Before the place's only sale they are empty.
  for (const table of ['account', 'sold_total']) await run(`DELETE FROM system.${table}`)
}

async function readHeight(database: Database, query: string): Promise<number> {
  const [row] = await database.query<{ height: bigint }>(sql.compiled(query, []))
  return Number(row?.height)
}

const beforeSale = 'SELECT height - 1 AS height FROM system.sale'

describe('damage to the log', () => {
  test.each([
    ['with all else as it is', [], nameTable('operations.claim', { field: 'state' })],
    ['and its claim', ['claim'], nameTable('operations.kept_reply', { field: 'payment_id' })],
    [
      'its claim and its kept reply',
      ['claim', 'kept_reply'],
      nameTable('operations.transaction_journal', { field: 'id' }),
    ],
  ] as const)(
    'the audit finds the log of the service cut off with a sale, %s',
    async (_, gone, named) => {
      await place.harmed(async (database, config) => {
        await cut(database, 'system', await readHeight(database, beforeSale))
        for (const table of gone)
          await database.execute(sql`DELETE FROM ${sql.id('operations', table)}`)
        expect((await audit(config, logNothing)).difference).toMatchObject(named)
      })
    },
  )

  test('the audit finds nothing where the tables have not followed the log yet, as after a crash', async () => {
    await place.harmed(async (database, config) => {
      await setBack(database, 'system', await readHeight(database, beforeSale))
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
      await database.execute(sql`UPDATE operations.claim SET amount = amount + 1`)
      expect((await audit(config, logNothing)).difference).toMatchObject(
        nameTable('operations.claim'),
      )
    })
  })

  test('the audit finds a log of an application cut off, by what the service announced of it', async () => {
    await place.harmed(async (database, config) => {
      await cut(database, 'app_1', 1)
      expect(await rebuild(config, logNothing)).toMatchObject({ equal: true })
      const { difference } = await audit(config, logNothing)
      expect(difference).toMatchObject({ what: expect.stringMatching(/^head of /) })
    })
  })

  test('the audit finds a log of an application cut off before it was announced, by what was sold from it', async () => {
    await place.harmed(async (database, config) => {
      await database.execute(sql`UPDATE operations.claim SET write_after = 99`)
      const { difference } = await audit(config, logNothing)
      expect(difference).toMatchObject({ what: expect.stringMatching(/^block 99 of .*claim pay_/) })
    })
  })

  test('the audit finds everything cut off together for an owner who has kept a checkpoint, and for nobody else', async () => {
    await place.harmed(async (database, config) => {
      const file = (name: string, text: string) => {
        const path = join(config.dataDir, name)
        writeFileSync(path, text)
        return path
      }
      const [before, after] = place.checkpoints.map(({ system, app }, at) => [
        file(`system-${at}`, system),
        file(`app-${at}.json`, JSON.stringify({ checkpoint: app })),
      ])
      const all = [...(before ?? []), ...(after ?? [])]
      expect(await audit(config, logNothing, { checkpoints: all })).toMatchObject({ equal: true })
      await cut(database, 'system', await readHeight(database, beforeSale))
      for (const table of ['claim', 'kept_reply', 'transaction_journal'])
        await database.execute(sql`DELETE FROM ${sql.id('operations', table)}`)
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
      expect(await audit(config, logNothing, { checkpoints: before ?? [] })).toMatchObject({
        equal: true,
      })
      expect((await audit(config, logNothing, { checkpoints: all })).difference).toMatchObject({
        chain: 'system',
        what: expect.stringMatching(/^the tree of \d+ entries, as .*system-1 says$/),
        found: expect.stringMatching(/^a log of \d+ entries$/),
      })
      const forged = file('forged', place.checkpoints[1]?.system.replace(/\n\d+\n/, '\n1\n') ?? '')
      await expect(audit(config, logNothing, { checkpoints: [forged] })).rejects.toThrow(
        'signature of the checkpoint',
      )
      await expect(audit(config, logNothing, { checkpoints: [file('none', 'x')] })).rejects.toThrow(
        '--checkpoint',
      )
    })
  })
})
