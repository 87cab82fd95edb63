import { expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase } from '../../database/testing.ts'
import { buildChannelMoves } from './payer-lists.ts'

test('the claims of channels that were listed alone are moves of channels, and are taken over once', async () => {
  const { database, drop } = await createTestDatabase('embedded')
  await database.execute(sql`CREATE SCHEMA system`)
  await database.execute(sql`CREATE TABLE system.channel_claim (
    leaf int8 NOT NULL, channel text NOT NULL, payer text NOT NULL, network text NOT NULL, amount numeric NOT NULL,
    transaction text, time_ms int8 NOT NULL, CONSTRAINT channel_claim_pkey PRIMARY KEY (leaf))`)
  await database.execute(
    sql`INSERT INTO system.channel_claim VALUES (7, '0xc', '0xp', 'eip155:1', -5, NULL, 12), (9, '0xc', '0xp', 'eip155:1', 5, '0xt', 13)`,
  )
  for (let times = 0; times < 2; times++)
    for (const statement of buildChannelMoves()) await database.execute(statement)
  const rows = await database.query(
    sql`SELECT leaf::int4 AS leaf, kind, amount::text AS amount, transaction FROM system.channel_move ORDER BY leaf`,
  )
  expect(rows).toEqual([
    { leaf: 7, kind: 'channel_claim', amount: '-5', transaction: null },
    { leaf: 9, kind: 'channel_claim', amount: '5', transaction: '0xt' },
  ])
  await drop()
})
