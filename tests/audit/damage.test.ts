import { describe, expect, test } from 'vitest'
import { type SqlStatement, sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

const quiet = () => undefined
/** Reads the first application's schema and the table of its first collection. */
const block = sql.id('app_1', 'block')
const tile = sql.id('app_1', 'tile')
const table = sql.id('app_1', 'c_1')

/** The damage, its repair, and the difference that the audit must name. */
type Damage = readonly [what: string, harm: SqlStatement, heal: SqlStatement, named: RegExp]

/** Flips one bit of one byte of one row; the same flip again repairs it. */
function flip(of: SqlStatement, column: string, where: SqlStatement): [SqlStatement, SqlStatement] {
  const name = sql.id(column)
  const once = sql`UPDATE ${of} SET ${name} = set_byte(${name}, 20, get_byte(${name}, 20) # 1) WHERE ${where}`
  return [once, once]
}

const last = sql`height = (SELECT max(height) FROM ${block})`
const change = (set: SqlStatement, back: SqlStatement, where: SqlStatement = sql`key = 'a'`) =>
  [
    sql`UPDATE ${table} SET ${set} WHERE ${where}`,
    sql`UPDATE ${table} SET ${back} WHERE ${where}`,
  ] as const

const damages: readonly Damage[] = [
  ['a byte of a block`s body', ...flip(block, 'body', last), /body|entry|leaf/],
  ['a byte of an old block`s body', ...flip(block, 'body', sql`height = 2`), /body|entry|leaf/],
  ['a byte of a block`s header', ...flip(block, 'header', last), /header|signature|hash/],
  ['a byte of a block`s signature', ...flip(block, 'signature', last), /signature/],
  ['a byte of the leaf hashes', ...flip(block, 'leaf_hashes', last), /leaf/],
  ['a byte of a tile', ...flip(tile, 'hashes', sql`level = 0`), /tile/],
  [
    'a record`s text',
    ...change(sql`body = replace(body, '1.50', '1.51')`, sql`body = replace(body, '1.51', '1.50')`),
    /table c_1/,
  ],
  [
    'what conditions look at',
    ...change(sql`data = jsonb_set(data, '{x}', '2')`, sql`data = jsonb_set(data, '{x}', '1.50')`),
    /table c_1/,
  ],
  ['a record that is hidden', ...change(sql`deleted = true`, sql`deleted = false`), /table c_1/],
  [
    'a version that counts as replaced',
    ...change(sql`superseded_by = 1`, sql`superseded_by = NULL`),
    /table c_1/,
  ],
  [
    'a count',
    sql`UPDATE app_1.collection_stats SET documents = documents + 1`,
    sql`UPDATE app_1.collection_stats SET documents = documents - 1`,
    /collection_stats/,
  ],
  [
    'a definition',
    sql`UPDATE app_1.definition SET body = replace(body, '"notes"', '"motes"')`,
    sql`UPDATE app_1.definition SET body = replace(body, '"motes"', '"notes"')`,
    /definition/,
  ],
  [
    'a key`s permissions',
    sql`UPDATE system.api_key SET body = replace(body, '"Write"', '"Read"')`,
    sql`UPDATE system.api_key SET body = replace(body, '"Read","Read"', '"Read","Write"')`,
    /api_key/,
  ],
  [
    'a table that no entry speaks of',
    sql`CREATE TABLE app_1.c_99 (id int8 NOT NULL, CONSTRAINT c_99_pkey PRIMARY KEY (id))`,
    sql`DROP TABLE app_1.c_99`,
    /c_99/,
  ],
  [
    'a watermark that is ahead',
    sql`UPDATE app_1.watermark SET leaf = leaf + 1`,
    sql`UPDATE app_1.watermark SET leaf = leaf - 1`,
    /watermark/,
  ],
]

describe('the audit', () =>
  withService((service) => {
    test('the audit finds a service at rest equal to its entries, names each damage of one place, and finds it equal again after a rebuild', async () => {
      const app = await createData(service())
      await app.store(
        'notes',
        Array.from({ length: 300 }, (_, at) => ({ id: `r${at}` })),
      )
      await app.storeText('notes', '{"id":"a","x":1.50},{"id":"b"}')
      await app.store('notes', [{ id: 'b', deleted: true }])
      await service().running.service.tenants.announceHeads()
      const { database } = service()
      await service().whileStopped(async (config) => {
        expect(await audit(config, quiet)).toMatchObject({ equal: true })
        for (const [what, harm, heal, named] of damages) {
          expect(await database.execute(harm), what).not.toBe(undefined)
          const { equal, difference } = await audit(config, quiet)
          expect(equal, what).toBe(false)
          expect(String(difference?.what), what).toMatch(named)
          expect(difference?.chain, what).toBe(what.includes('key') ? 'system' : app.appId)
          await database.execute(heal)
        }
        expect(await audit(config, quiet), 'all damage is healed').toMatchObject({ equal: true })
        await database.execute(sql`DELETE FROM app_1.c_1 WHERE key = 'a'`)
        await database.execute(sql`UPDATE app_1.collection_stats SET documents = 7`)
        expect((await audit(config, quiet)).equal).toBe(false)
        expect(await rebuild(config, quiet)).toMatchObject({ equal: true })
        expect(await audit(config, quiet)).toMatchObject({ equal: true })
      })
      expect((await app.record('notes', 'a')).body.record).toEqual({ id: 'a', x: 1.5 })
      expect((await app.store('notes', [{ id: 'after' }])).status).toBe(200)
    })
  }))
