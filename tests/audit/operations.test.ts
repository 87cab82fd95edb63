import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readOperationsStructure } from '../../packages/server/src/operator/audit/audit-operations.ts'
import { type Harm, nameTable, openPlace, type Place, testHarms } from './place.ts'

let place: Place
beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place?.close())

/** The damage that can be done to operational state. */
const operations: readonly Harm[] = [
  ...[
    ['amount', `amount = amount + 1`],
    ['cap', `cap = 0`],
    ['identity', `identity = identity || '0'`],
    ['request_hash', `request_hash = repeat('0', 64)`],
    ['app', `app = 'other'`],
    ['settled_by', `settled_by = '0x' || repeat('0', 64)`],
    ['valid_before', `valid_before = valid_before + 1`],
    ['quote_id', `quote_id = 'other'`],
    ['id', `id = 'pay_' || repeat('0', 32)`],
    ['identity', `payment = replace(payment, '"nonce":"0x', '"nonce":"0x00')`],
  ].map(([field = '', change]) => ({
    what: `a claim: ${change}`,
    harm: `UPDATE operations.claim SET ${change}`,
    named: nameTable('operations.claim', { field, row: expect.stringContaining('pay_') }),
  })),
  {
    what: 'a claim whose payment is no JSON',
    harm: `UPDATE operations.claim SET payment = '{'`,
    named: nameTable('operations.claim'),
  },
  {
    what: 'a claim that is gone',
    harm: 'DELETE FROM operations.claim',
    named: nameTable('operations.claim', { field: 'id' }),
  },
  {
    what: 'another reply for a retry',
    harm: `UPDATE operations.kept_reply SET body = convert_to('{"records":[]}', 'UTF8')`,
    named: nameTable('operations.kept_reply', { field: 'body' }),
  },
  {
    what: 'another reply, with the sale that fits it',
    harm: `UPDATE operations.kept_reply SET body = convert_to('{}', 'UTF8'),
      sale = replace(sale, sale::jsonb ->> 'result_hash', encode(sha256(convert_to('{}', 'UTF8')), 'hex'))`,
    named: nameTable('operations.kept_reply', { field: 'sale' }),
  },
  {
    what: 'a kept reply of a refusal',
    harm: `UPDATE operations.kept_reply SET status = 500`,
    named: nameTable('operations.kept_reply', { field: 'status' }),
  },
  {
    what: 'a kept reply of another status of success',
    harm: `UPDATE operations.kept_reply SET status = 204`,
    named: nameTable('operations.kept_reply', { field: 'status', expected: '200', found: '204' }),
  },
  {
    what: 'a kept reply of another type',
    harm: `UPDATE operations.kept_reply SET content_type = 'text/html'`,
    named: nameTable('operations.kept_reply', { field: 'content_type', found: 'text/html' }),
  },
  {
    what: 'a kept reply that is over before it was bought',
    harm: `UPDATE operations.kept_reply SET expires_at_ms = 0`,
    named: nameTable('operations.kept_reply', { field: 'expires_at_ms' }),
  },
  ...['failed', 'void', 'claimed'].map((state) => ({
    what: `a claim that is ${state} in place of sold`,
    harm: `UPDATE operations.claim SET state = '${state}', settled_by = NULL`,
    named: nameTable('operations.claim', { field: 'state', found: state }),
  })),
  {
    what: 'a network whose genesis is not noted any more',
    harm: `DELETE FROM operations.network_pin`,
    named: nameTable('operations.network_pin', { field: 'network' }),
  },
  {
    what: 'an answer that is gone and waits for its money',
    harm: `INSERT INTO operations.claim SELECT made.* FROM operations.claim AS claim, LATERAL (SELECT split_part(identity, '/', 4) AS old, '0x' || repeat('1', 64) AS fresh) AS nonce,
      LATERAL jsonb_populate_record(claim, jsonb_build_object('identity', replace(identity, old, fresh), 'id', 'pay_' || repeat('1', 32),
        'payment', replace(payment, old, fresh), 'state', 'ready', 'settled_by', NULL, 'told_transaction', NULL)) AS made`,
    named: nameTable('operations.kept_reply', {
      field: 'payment_id',
      row: `pay_${'1'.repeat(32)}`,
    }),
  },
  {
    what: 'a kept reply of no payment',
    harm: `INSERT INTO operations.kept_reply SELECT 'pay_x', status, body, sale, expires_at_ms FROM operations.kept_reply`,
    named: nameTable('operations.kept_reply', { field: 'payment_id' }),
  },
  ...[
    ['hash', `hash = '0x' || repeat('0', 64)`],
    ['hash', `raw = raw || '\\x00'::bytea`],
    ['nonce', `nonce = nonce + 7`],
    ['network', `network = 'eip155:1'`],
    ['hash', `earlier_raws = ARRAY['\\x02'::bytea], earlier_hashes = ARRAY['0x']`],
    ['nonce', `nonce = nonce + 7, earlier_raws = ARRAY[raw], earlier_hashes = ARRAY[hash]`],
    ['id', `id = 'pay_' || repeat('0', 32)`],
  ].map(([field = '', change]) => ({
    what: `the journal: ${change}`,
    harm: `UPDATE operations.transaction_journal SET ${change}`,
    named: nameTable('operations.transaction_journal', { field }),
  })),
  {
    what: 'a transfer whose money was taken from nobody',
    harm: `INSERT INTO operations.outgoing_transfer VALUES ('wd_x', 'withdrawal', 'wallet:0x00', 'eip155:84532', '0x00',
      5, 'debited', 0, NULL, NULL, 1, 1)`,
    named: nameTable('operations.outgoing_transfer', { row: 'wd_x', field: 'state' }),
  },
  {
    what: 'money that a chain took back and that was never booked',
    harm: `INSERT INTO operations.taken_back VALUES ('pay_x', NULL)`,
    named: nameTable('operations.taken_back', { row: 'pay_x', field: 'id' }),
  },
  ...[`claim.settled_by`, `'0x'`].map((transaction) => ({
    what: `money that came back by ${transaction}`,
    harm: `INSERT INTO operations.taken_back SELECT id, ${transaction} FROM operations.claim AS claim WHERE settled_by IS NOT NULL LIMIT 1`,
    named: nameTable('operations.taken_back', { field: 'transaction' }),
  })),
  {
    what: 'a publication of another tree',
    harm: `INSERT INTO operations.publication SELECT 'eip155:1', app_id, 1, 0, 1, 1, 1, 'x', '\\x00', 5, 0, 'waiting', NULL, NULL, NULL FROM system.application LIMIT 1`,
    named: nameTable('operations.publication', { field: 'size and root' }),
  },
  {
    what: 'a publication of no application',
    harm: `INSERT INTO operations.publication VALUES ('eip155:1', 'nobody', 1, 0, 1, 1, 1, 'x', '\\x00', 5, 0, 'waiting', NULL, NULL, NULL)`,
    named: nameTable('operations.publication', { field: 'app' }),
  },
  {
    what: 'less than nothing published on a day',
    harm: `INSERT INTO operations.publication_day VALUES ('eip155:1', 20000, -1)`,
    named: nameTable('operations.publication_day', { field: 'bytes' }),
  },
  {
    what: 'a lease that is older than the blocks',
    harm: `UPDATE operations.chain_lease SET epoch = 0 WHERE chain = 'app_1'`,
    named: nameTable('operations.chain_lease', { row: 'app_1' }),
  },
  {
    what: 'a lease of no chain',
    harm: `UPDATE operations.chain_lease SET chain = 'app_7' WHERE chain = 'app_1'`,
    named: nameTable('operations.chain_lease'),
  },
  {
    what: 'a secret that is shorter',
    harm: `UPDATE operations.service_secret SET value = '\\x00' WHERE name = 'quotes'`,
    named: nameTable('operations.service_secret', { row: 'quotes' }),
  },
  {
    what: 'another name of the service',
    harm: `UPDATE operations.service_secret SET value = '\\x00000000' WHERE name = 'service-name'`,
    named: { what: 'header origin' },
  },
  {
    what: 'a use of no key',
    harm: `INSERT INTO operations.key_use VALUES ('x', 1)`,
    named: nameTable('operations.key_use'),
  },
  {
    what: 'a signature that is none',
    harm: `INSERT INTO operations.used_signature VALUES ('x', 1)`,
    named: nameTable('operations.used_signature'),
  },
  {
    what: 'a named request that is none',
    harm: `INSERT INTO operations.named_request VALUES ('x', 'operator', 'x', 'x', NULL, 1)`,
    named: nameTable('operations.named_request', { row: 'x' }),
  },
  {
    what: 'a note of no request',
    harm: `INSERT INTO operations.commit_note VALUES ('x')`,
    named: nameTable('operations.commit_note', { row: 'x' }),
  },
  {
    what: 'another chain of payments',
    harm: `UPDATE operations.network_pin SET genesis_hash = 'x'`,
    named: nameTable('operations.network_pin'),
  },
  {
    what: 'a hold of a claim that is none',
    harm: `INSERT INTO operations.account_hold VALUES ('pay_x', 'wallet:0x1', 1)`,
    named: nameTable('operations.account_hold', { row: 'pay_x' }),
  },
  {
    what: 'a hold of a block that sold nothing',
    harm: `INSERT INTO operations.account_hold VALUES ('block_1_1', 'wallet:0x1', 1, NULL, NULL, 1)`,
    named: nameTable('operations.account_hold', { row: 'block_1_1' }),
  },
  {
    what: 'uses of a claim that is none',
    harm: `INSERT INTO operations.use_hold VALUES ('pay_x', 'wallet:0x1', 1, '[]')`,
    named: nameTable('operations.use_hold', { row: 'pay_x' }),
  },
  ...[`'pay_x'`, `'settlement_x'`].map((taker) => ({
    what: `a payment that ${taker} has`,
    harm: `INSERT INTO operations.payment_taker SELECT identity, ${taker}, 1 FROM operations.claim LIMIT 1`,
    named: nameTable('operations.payment_taker', { field: 'taker' }),
  })),
  {
    what: 'a payment that is none, and that a settlement has',
    harm: `INSERT INTO operations.payment_taker VALUES ('x', 'settlement_' || repeat('0', 32), 1)`,
    named: nameTable('operations.payment_taker', { row: 'x', field: 'identity' }),
  },
  {
    what: 'a data key that is none',
    harm: `INSERT INTO operations.data_key VALUES ('shop', 'col_1', 1, 'x', '\\x00', 0, 0)`,
    named: nameTable('operations.data_key'),
  },
  {
    what: 'an erasure of a chain that is not there',
    harm: `INSERT INTO operations.erasure VALUES ('app_99', 1)`,
    named: nameTable('operations.erasure', { row: 'app_99' }),
  },
  {
    what: 'files to write anew of a chain that is not there',
    harm: `INSERT INTO operations.scrub VALUES ('app_99', 1, 1)`,
    named: nameTable('operations.scrub', { row: 'app_99' }),
  },
  {
    what: 'a blob on Celestia that is of no log',
    harm: `INSERT INTO operations.celestia_blob VALUES ('celestia:mocha', 'x', '\\x00', '\\x00', 1, 'nobody', 1, 'x', 'sent', 1, 1)`,
    named: nameTable('operations.celestia_blob', { row: 'x', field: 'origin' }),
  },
  {
    what: 'another name of a migration',
    harm: `UPDATE operations.migration SET name = 'x' WHERE id = 2`,
    named: nameTable('operations.migration', { row: '2' }),
  },
]

describe('damage to tables that the log does not decide', () => {
  testHarms(operations, () => place)
})

test('the audit knows the form of every operational table, as the migrations make them, and looks into each', async () => {
  await place.harmed(async (database) => {
    const { stored, expected } = await readOperationsStructure(database)
    expect(stored).toEqual(expected)
    const tables = new Set(
      expected.filter(({ part }) => part === 'kind').map(({ relation }) => relation),
    )
    const looked = operations.flatMap(
      ({ named }) => /operations\.(\w+)/.exec(JSON.stringify(named))?.[1] ?? [],
    )
    // The rows belong to the processes that run now, or say nothing; only the form of the tables is audited.
    for (const each of ['migration_lock', 'signer_lease', 'account_lock']) tables.delete(each)
    expect([...tables].toSorted()).toEqual([...new Set(looked)].toSorted())
  })
})
