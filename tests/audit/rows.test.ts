import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import {
  type Harm,
  logNothing,
  nameTable,
  openPlace,
  type Place,
  records,
  testHarms,
} from './place.ts'

let place: Place
beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place?.close())

/** The damage that can be done to rows that follow from the log. */
const rows: readonly Harm[] = [
  {
    what: 'a changed text of a record',
    harm: `UPDATE app_1.c_2 SET body = replace(body, '7', '8') WHERE key = 's2'`,
    named: nameTable('c_2', {
      ...records,
      row: expect.stringMatching(/"leaf": ?\d+/),
      field: 'body',
      expected: expect.stringContaining('7'),
      found: expect.stringContaining('8'),
    }),
    mended: true,
  },
  {
    what: 'a removed version',
    harm: `DELETE FROM app_1.c_2 WHERE superseded_by IS NOT NULL`,
    named: nameTable('c_2', { ...records, found: 'no such row' }),
    mended: true,
  },
  {
    what: 'a value of a data set',
    harm: `DELETE FROM app_1.d_#set WHERE value = '7'`,
    named: nameTable('d_#set', { found: 'no such row' }),
    mended: true,
  },
  {
    what: 'the count of a group in a view',
    harm: `UPDATE app_1.v_#live SET n = n + 1`,
    named: { what: 'view live', table: 'table v_#live', field: 'n' },
    mended: true,
  },
  {
    what: 'the hash of a group in a view',
    harm: `UPDATE app_1.v_#live SET hash = hash + 1 WHERE k0 = '"BTC"'`,
    named: { what: 'view live', table: 'table v_#live' },
    mended: true,
  },
  {
    what: 'a value that the extremes of a view are found by',
    harm: `UPDATE app_1.s_#live_1_0 SET n = n + 1`,
    named: { what: 'view live', table: 'table s_#live_1_0', field: 'n' },
    mended: true,
  },
  {
    what: 'an emptied view',
    harm: `DELETE FROM app_1.v_#live`,
    named: { what: 'view live', found: 'no such row' },
    mended: true,
  },
  {
    what: 'an emptied view that says that it is of the beginning',
    harm: [
      `DELETE FROM app_1.v_#live`,
      `UPDATE app_1.view_state SET leaf = 0, height = 0, sequence = 0 WHERE id = #live`,
    ],
    named: { what: 'view live', field: 'leaf' },
    mended: true,
  },
  ...['stale', 'failed', 'lazy'].map((status) => ({
    what: `a view that is kept up and said to be ${status}`,
    harm: `UPDATE app_1.view_state SET status = '${status}' WHERE id = #live`,
    named: { what: 'view live', field: 'status', found: status },
    mended: true,
  })),
  {
    what: 'where a view is wanted',
    harm: `UPDATE app_1.view_state SET wanted_leaf = wanted_leaf - 1 WHERE id = #lazy`,
    named: nameTable('view_state', { field: 'wanted_leaf' }),
    mended: true,
  },
  {
    what: 'a balance and its counterpart',
    harm: [
      `UPDATE system.account SET balance = balance + 1 WHERE account = 'platform'`,
      `UPDATE system.account SET balance = balance - 1 WHERE account LIKE 'app:%'`,
    ],
    named: nameTable('account', { field: 'balance', chain: 'system' }),
    mended: true,
  },
  {
    what: 'a block before the first',
    harm: `INSERT INTO app_1.block SELECT 0, header, signature, -1, entry_count, group_starts, body, leaf_hashes FROM app_1.block WHERE height = 1`,
    named: { what: 'block 0' },
  },
]

describe('damage to tables that follow from the log', () => {
  testHarms(rows, () => place)

  test('a view that is marked stale is not equal, though its rows are right', async () => {
    await place.harmed(async (database, config) => {
      const text = `UPDATE app_1.view_state SET status = 'stale', whole = false, reason = 'x' WHERE id = #live`
      await database.execute(sql.compiled(place.inserted(text), []))
      const report = await audit(config, logNothing)
      expect(report).toMatchObject({
        equal: false,
        unfinished: [{ what: 'view live', found: 'a stale one', reason: 'x' }],
      })
    })
  })

  test('data keys that a key manager wraps are right', async () => {
    await place.harmed(async (database, config) => {
      await database.execute(sql`
        INSERT INTO operations.data_key (app, collection, epoch, master_key, wrapped, reserved, created_at)
        VALUES ('x', 'y', 0, 'command:vault-1', convert_to('vault:v1:AAAA', 'UTF8'), 0, 0)`)
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
    })
  })

  test('the audit finds nothing equal until a view is filled that was emptied and made to wait for its filling', async () => {
    await place.harmed(async (database, config) => {
      for (const text of [
        'DELETE FROM app_1.v_#live',
        `UPDATE app_1.view_state SET status = 'building', whole = false, leaf = 0, height = 0, sequence = 0,
          revision = 0, refreshed_at = NULL WHERE view LIKE '%'`,
      ])
        await database.execute(sql.compiled(place.inserted(text), []))
      const report = await audit(config, logNothing)
      expect(report).toMatchObject({ equal: false, unfinished: expect.any(Array) })
      expect(report.difference).toBeUndefined()
      expect(await rebuild(config, logNothing)).toMatchObject({ equal: true })
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
    })
  })
})
