import { afterAll, beforeAll, expect, test } from 'vitest'
import { requirePresent } from '../../../base/assert.ts'
import type { Database } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../../database/testing.ts'
import {
  buildHoldBudgetColumns,
  buildHoldHeightColumn,
  buildHoldTables,
} from '../accounts/holds.ts'
import { applyEvent, applyEventToAll } from './claim-steps.ts'
import { findClaim, setWriteAfter, updateStates } from './claim-store.ts'
import {
  buildBalanceStates,
  buildClaimStates,
  buildClaimTermsColumn,
  buildDepositedState,
  buildNarrowSales,
  buildPaymentIdentifierColumn,
  buildPaymentTables,
  buildReplySourcesColumn,
  buildReplyTypeColumn,
  buildWriteFormColumn,
} from './claim-tables.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createTestDatabase()
})
afterAll(() => store?.drop())

/** Each form that a claim had while its state was read from three columns, and the state that it is. */
const forms = [
  ['claimed', false, null, 'claimed'],
  // Opened again after it had failed for good.
  ['claimed', true, null, 'claimed'],
  ['claimed', false, '0x1', 'answered'],
  ['failed', false, '0x1', 'answered'],
  ['failed', true, '0x1', 'answered'],
  ['failed', false, null, 'failed'],
  ['failed', true, null, 'void'],
  ['settled', false, '0x1', 'deposited'],
  ['delivered', true, '0x1', 'delivered'],
] as const

test('claims of an older database keep their states, under names of their own', async () => {
  const { database } = store
  for (const statement of [
    sql`CREATE SCHEMA operations`,
    ...buildPaymentTables(),
    ...buildReplyTypeColumn(),
    ...buildClaimTermsColumn(),
  ])
    await database.execute(statement)
  for (const [at, form] of forms.entries()) await insertOld(database, at, form)
  for (const statement of [
    ...buildClaimStates(),
    ...buildBalanceStates(),
    ...buildDepositedState(),
    ...buildWriteFormColumn(),
    ...buildPaymentIdentifierColumn(),
    ...buildReplySourcesColumn(),
    ...buildNarrowSales(),
    ...buildHoldTables(),
    ...buildHoldBudgetColumns(),
    ...buildHoldHeightColumn(),
  ])
    await database.execute(statement)
  for (const [at, [, , , state]] of forms.entries())
    expect((await findClaim(database, { id: `pay_${at}` }))?.state, `pay_${at}`).toBe(state)
  await expect(database.execute(sql`UPDATE operations.claim SET state = 'paid'`)).rejects.toThrow(
    /claim_state/,
  )
  await expect(
    database.execute(sql`UPDATE operations.claim SET settled_by = NULL`),
  ).rejects.toThrow(/claim_state/)
})

test('a claim is moved only from the state that it is known to be in', async () => {
  const { database } = store
  const read = async () => (await findClaim(database, { id: 'pay_0' }))?.state
  const known = { ids: ['pay_0', 'pay_3'], state: 'claimed', event: 'booked' } as const
  expect(await updateStates(database, known, { settledBy: '0x1' })).toEqual(['pay_0'])
  expect(await read()).toBe('deposited')
  expect(await updateStates(database, { ...known, event: 'voided' }, { reason: 'late' })).toEqual(
    [],
  )
  expect(await read()).toBe('deposited')
  await expect(updateStates(database, { ...known, event: 'charged' })).rejects.toThrow(
    /kept before/,
  )
})

test('an event of a payment that another process has brought on meanwhile happens to the state that it has now', async () => {
  const ports = { database: store.database }
  const late = { id: 'pay_8', state: 'claimed' } as const
  await applyEventToAll(ports, [late], 'charged')
  expect((await applyEvent(ports, late, { event: 'charged' })).to).toBe('delivered')
  const claimed = { ...late, id: 'pay_1' }
  await expect(applyEvent(ports, claimed, { event: 'charged' })).rejects.toThrow(/kept before/)
})

test('a write is noted while its money is kept, and a hold that was given back is not kept by a claim of own money', async () => {
  const { database } = store
  const note = { height: 7, form: 'form' }
  const read = async () => requirePresent(await findClaim(database, { id: 'pay_1' }), 'the claim')
  const claimed = await read()
  expect(claimed.state).toBe('claimed')
  expect(await setWriteAfter(database, { ...claimed, state: 'held' }, note)).toBe(false)
  expect(await setWriteAfter(database, { ...claimed, request_hash: 'other' }, note)).toBe(false)
  expect((await read()).write_after).toBe(null)
  expect(await setWriteAfter(database, claimed, note)).toBe(true)
  expect((await read()).write_after).toBe(7n)
  // The reconciler finds the money meanwhile, then gives it back.
  const known = { ids: [claimed.id], state: 'claimed', event: 'reserved' } as const
  expect(await updateStates(database, known, { settledBy: '0x1' })).toHaveLength(1)
  expect(await setWriteAfter(database, claimed, note)).toBe(true)
  expect(await setWriteAfter(database, await read(), note)).toBe(true)
  await updateStates(database, { ...known, state: 'held', event: 'freed' }, { settledBy: '0x1' })
  expect(await setWriteAfter(database, claimed, note)).toBe(false)
})

async function insertOld(
  database: Database,
  at: number,
  [state, isFinal, settledBy]: (typeof forms)[number],
): Promise<void> {
  await database.execute(sql`
    INSERT INTO operations.claim (identity, id, request_hash, app, operation, amount, cap, valid_before, payment, state,
      is_final, settled_by, created_at_ms)
    VALUES (${`identity ${at}`}, ${`pay_${at}`}, 'hash', 'shop', 'list', 1, 1, 1, '{}', ${state}, ${isFinal}, ${settledBy}, 1)`)
}
