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
import { applyEvent, applyEventToAll, keepAnswer } from './claim-steps.ts'
import { type Claim, findClaim, setWriteAfter, updateStates } from './claim-store.ts'
import {
  buildBalanceStates,
  buildClaimStates,
  buildClaimTermsColumn,
  buildDepositedState,
  buildNarrowSales,
  buildNextLookColumn,
  buildPaymentIdentifierColumn,
  buildPaymentTables,
  buildReplySourcesColumn,
  buildReplyTypeColumn,
  buildWriteFormColumn,
} from './claim-tables.ts'
import { type KeepOrder, keepReply } from './reply-store.ts'

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
    ...buildNextLookColumn(),
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
  const note = { height: 7, form: '{"rows":1}' }
  const read = async () => requirePresent(await findClaim(database, { id: 'pay_1' }), 'the claim')
  const claimed = await read()
  expect(claimed.state).toBe('claimed')
  expect(await setWriteAfter(database, { ...claimed, state: 'held' }, note)).toBe(false)
  expect(await setWriteAfter(database, { ...claimed, request_hash: 'other' }, note)).toBe(false)
  expect((await read()).write_after).toBe(null)
  expect(await setWriteAfter(database, claimed, note)).toBe(true)
  expect((await read()).write_after).toBe(7n)
  const tried = await read()
  // Nothing was written, and the hold is about to end: another process may try once more before that.
  expect(await setWriteAfter(database, claimed, { ...note, height: 9 })).toBe(true)
  const again = await read()
  expect(again.write_after).toBe(7n)
  expect(again.write_form).not.toBe(tried.write_form)
  // The reconciler finds the money meanwhile, then gives it back.
  const known = { ids: [claimed.id], state: 'claimed', event: 'reserved' } as const
  expect(await updateStates(database, known, { settledBy: '0x1' })).toHaveLength(1)
  expect(await setWriteAfter(database, claimed, note)).toBe(true)
  expect(await setWriteAfter(database, await read(), note)).toBe(true)
  const freed = { ...known, state: 'held', event: 'freed' } as const
  const late = { ...freed, writeForm: again.write_form }
  expect(await updateStates(database, late, { settledBy: '0x1' })).toEqual([])
  await updateStates(database, freed, { settledBy: '0x1' })
  expect(await setWriteAfter(database, claimed, note)).toBe(false)
})

test('what was made for a claim of one use is neither written nor kept for a claim that was held anew for another', async () => {
  const { database } = store
  const claim = requirePresent(await findClaim(database, { id: 'pay_5' }), 'the claim')
  expect(claim.state).toBe('failed')
  const hold = async (cap: bigint, terms: string) => {
    const known = { ids: [claim.id], state: 'failed', event: 'covered' } as const
    const use = { ...claim, cap, terms, request_hash: 'hash' }
    expect(await updateStates(database, known, { use })).toEqual([claim.id])
    return requirePresent(await findClaim(database, claim), 'the claim')
  }
  const release = () => {
    const known = { ids: [claim.id], state: 'held', event: 'released' } as const
    return updateStates(database, known)
  }
  const keep = (known: Claim) => {
    const reply = { status: 200, body: Buffer.from('answer'), contentType: null, sale: '{}' }
    const keeping = { ...reply, sources: [], settledBy: null, expiresAtMs: 2e12 }
    const ports = { database, keep: (order: KeepOrder) => keepReply(database, order) }
    return keepAnswer(ports, known, keeping)
  }
  const note = { height: 7, form: '{"rows":1}' }
  const dear = '{"price":100}'
  const first = await hold(100n, dear)
  for (const [cap, terms] of [
    [50n, dear],
    [100n, '{"price":50}'],
  ] as const) {
    await release()
    await hold(cap, terms)
    expect(await setWriteAfter(database, first, note)).toBe(false)
    await expect(keep(first)).rejects.toMatchObject({ code: 'PAYMENT_PENDING' })
    expect(await findClaim(database, claim)).toMatchObject({ state: 'held', write_after: null })
  }
  // For the same use it is as good as the first time.
  await release()
  await hold(100n, dear)
  expect(await setWriteAfter(database, first, note)).toBe(true)
  expect(await keep(first)).toMatchObject({ state: 'owed' })
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
