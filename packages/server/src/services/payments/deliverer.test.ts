import { giveParts } from '@tollbase/testing/give-parts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../base/world.ts'
import { createTestChain } from '../../chain/testing.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { Ledger } from '../../projections/ledger.ts'
import { makeApplier } from '../../projections/make-applier.ts'
import { type Claim, insertClaim } from './claims/claim-store.ts'
import { keepReply } from './claims/reply-store.ts'
import { Deliverer } from './deliverer.ts'
import { makeDepositEntry } from './deposits/claim-deposit.ts'
import { makeSaleEntry } from './make-sale.ts'
import type { PaymentPorts } from './payment-ports.ts'
import { listClaimTables } from './payment-tables.test-support.ts'

let store: TestDatabase

beforeAll(async () => {
  store = await createTestDatabase()
})

afterAll(() => store?.drop())

const claim: Claim = {
  id: 'pay_1',
  identity: 'eip155:1/0xa/0xb/0xc',
  request_hash: 'hash',
  app: 'shop',
  operation: 'listRecords',
  amount: 100n,
  cap: 100n,
  transfer: null,
  quote_id: null,
  terms: null,
  valid_before: 2_000_000_000n,
  payment: '{}',
  state: 'claimed',
  reason: null,
  settled_by: null,
  write_after: null,
  write_form: null,
  payment_identifier: null,
  created_at_ms: 1n,
}

function makeBookings() {
  const { id: paymentId, identity, amount } = claim
  const about = { network: 'eip155:1', asset: '0xa', transaction: '0x1' }
  const facts = {
    ...about,
    payment_id: paymentId,
    request_hash: 'hash',
    quote_hash: null,
    payer: '0xb',
    payee: 'app:shop',
    amount: '40',
    deposited: '100',
    change: '60',
    app: 'shop',
    operation: 'listRecords',
    as_of: null,
    row_count: 1,
    result_hash: 'hash',
    delivered_at: '2026-01-01T00:00:00.000Z',
  }
  const deposit = makeDepositEntry({ ...about, paymentId, identity, payer: '0xb', amount })
  return [deposit, makeSaleEntry({ identity, facts, split: { platformBasisPoints: 0n } })] as const
}

test('an answer that another process keeps and charges for at this moment is given, and never said to be gone', async () => {
  const { database } = store
  const { schema, open } = await createTestChain(database)
  const ledger = new Ledger()
  const tables = [
    ...ledger.tables(schema),
    sql`CREATE SCHEMA system`,
    sql`CREATE TABLE system.settled_payment (identity text)`,
    sql`CREATE TABLE system.sale (identity text)`,
    ...listClaimTables(),
  ]
  for (const statement of tables) await database.execute(statement)
  expect(await insertClaim(database, claim, 'presented')).toBe(true)
  const chain = await open({ applier: makeApplier(schema, [ledger]) })
  const [deposit, sale] = makeBookings()
  const body = Buffer.from('{"bought":true}')
  const otherProcess = async () => {
    const reply = { status: 200, body, contentType: null, sale: sale.body, sources: [] }
    const kept = { ...reply, settledBy: '0x1', expiresAtMs: 2e12 }
    expect(await keepReply(database, { claim, event: 'kept', keeping: kept })).toEqual(kept)
    const { height } = await chain.append([deposit, sale])
    await chain.whenApplied(height)
  }
  let statements = 0
  const meanwhile: Database = {
    ...database,
    query: async (statement, options) => {
      const rows = await database.query(statement, options)
      statements += 1
      if (statements === 1) await otherProcess()
      return rows as never
    },
  }
  const ports = giveParts<PaymentPorts>({
    database: meanwhile,
    tenants: { system: { chain, ledger, schema } },
    world: realWorld,
  })
  const funded = { claim, transaction: '0x1', isFresh: false }
  const bought = await new Deliverer(ports).findReplyAndCharge(funded)
  expect(bought).toMatchObject({ paymentId: claim.id, status: 200, body })
  // It was booked once.
  await chain.whenApplied(chain.head().height)
  const [row] = await database.query<{ balance: string }>(
    sql`SELECT balance FROM ${sql.id(schema, 'account')} WHERE account = 'wallet:0xb'`,
  )
  expect(row?.balance).toBe('60')
  await chain.close()
})
