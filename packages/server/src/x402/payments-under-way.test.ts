import { describe, expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import { type Entering, type EnterOutcome, PaymentsUnderWay } from './payments-under-way.ts'

const from = `0x${'ab'.repeat(20)}`
/** So long that a test which waits for it has failed. */
const foreverMs = 60_000

function makePayment(nonce: string, value: bigint, to = 'shop') {
  return { from, to, nonce, value }
}

/** The payments under way of one payer with this balance; each read of it waits until the test lets it go on. */
function openUnderWay(balance: bigint, { waitMs = foreverMs } = {}) {
  const reads: (() => void)[] = []
  const underWay = new PaymentsUnderWay({
    ...{ world, pollMs: 1, waitMs },
    readBalance: () => new Promise((resolve) => reads.push(() => resolve(balance))),
  })
  const answerRead = async (count: number) => {
    await expect.poll(() => reads.length).toBe(count)
    reads[count - 1]?.()
  }
  /** Lets a payment in, before any other one comes. */
  const enterFirst = async (payment: ReturnType<typeof makePayment>) => {
    const first = underWay.enter(payment)
    await answerRead(1)
    expect(await first).toBe('entered')
    await world.sleep(5)
  }
  return { underWay, answerRead, enterFirst }
}

describe('PaymentsUnderWay', () => {
  test('a payment that comes while its payer is looked at does not wait for the end of those before it', async () => {
    const { underWay, answerRead } = openUnderWay(100n)
    const first = underWay.enter(makePayment('1', 40n))
    const late = underWay.enter(makePayment('2', 40n))
    await answerRead(1)
    expect(await first).toBe('entered')
    await answerRead(2)
    expect(await late).toBe('entered')
  })

  test('a payment behind one that took too long has its turn at once', async () => {
    const { underWay, answerRead, enterFirst } = openUnderWay(100n, { waitMs: 300 })
    await enterFirst(makePayment('1', 40n))
    const dear = underWay.enter(makePayment('2', 90n))
    await answerRead(2)
    await world.sleep(200)
    const cheap = underWay.enter(makePayment('3', 40n))
    expect(await dear).toBe('busy')
    await answerRead(3)
    expect(await cheap).toBe('entered')
  })

  test('a payment that its payer has too little for waits for the end of another one, and those behind it wait too', async () => {
    const { underWay, answerRead, enterFirst } = openUnderWay(100n)
    await enterFirst(makePayment('1', 40n))
    const order: string[] = []
    const dear = underWay.enter(makePayment('2', 90n)).then((entry) => order.push(`dear ${entry}`))
    const cheap = underWay.enter(makePayment('3', 5n)).then((entry) => order.push(`cheap ${entry}`))
    await answerRead(2)
    await world.sleep(20)
    expect(order).toEqual([])
    underWay.leave(makePayment('1', 40n), 'made')
    await answerRead(3)
    await Promise.all([dear, cheap])
    expect(order).toEqual(['dear entered', 'cheap entered'])
  })

  test('a payment that its payer has too little for by itself is told so', async () => {
    const { underWay, answerRead } = openUnderWay(100n)
    const dear = underWay.enter(makePayment('1', 101n))
    await answerRead(1)
    expect(await dear).toBe('short')
  })

  test('a payer of whom nothing was made has eight under way, and one more for each that was made', async () => {
    const { underWay, answerRead } = openUnderWay(1_000n)
    const payments = Array.from({ length: 12 }, (_, at) => makePayment(String(at), 1n))
    const entered: string[] = []
    for (const payment of payments)
      void underWay.enter(payment).then(() => entered.push(payment.nonce))
    // The first of them had the chain asked, alone; all others came meanwhile.
    await answerRead(1)
    await answerRead(2)
    await expect.poll(() => entered.length).toBe(8)
    underWay.leave(makePayment('0', 1n), 'not made')
    await answerRead(3)
    await expect.poll(() => entered.length).toBe(9)
    underWay.leave(makePayment('1', 1n), 'made')
    await answerRead(4)
    await expect.poll(() => entered.length).toBe(11)
  })

  /** The same, where the chain answers at once. */
  function openQuick(balance: bigint) {
    const readBalance = async () => balance
    return new PaymentsUnderWay({ ...{ world, pollMs: 1, waitMs: foreverMs }, readBalance })
  }

  /** Brings so many payments at once; returns the nonces of those that entered, and of those that may not wait. */
  async function crowd(
    underWay: PaymentsUnderWay,
    count: number,
    { to = 'shop', payer = from, ...entering }: { to?: string; payer?: string } & Entering = {},
  ) {
    const ends: Record<EnterOutcome, string[]> = { entered: [], short: [], busy: [] }
    for (let at = 0; at < count; at++) {
      const payment = { ...makePayment(`${to} ${at}`, 1n, to), from: payer }
      void underWay.enter(payment, entering).then((end) => ends[end].push(payment.nonce))
    }
    await world.sleep(30)
    return ends
  }

  test.each([
    { balance: 1_000n, busy: 0, late: 'waits' },
    { balance: 40n, busy: 500 - 40 - 64, late: 'busy' },
  ])('of 500 payments at once by a payer who has $balance, $busy may not wait', async (one) => {
    const underWay = openQuick(one.balance)
    const { entered, busy } = await crowd(underWay, 500)
    expect([entered.length, busy.length]).toEqual([8, one.busy])
    // The oldest wait.
    expect(busy.map((nonce) => Number(nonce.slice(5)))).toEqual(
      Array.from({ length: one.busy }, (_, at) => 500 - one.busy + at),
    )
    const more = underWay.enter(makePayment('late', 1n))
    expect(await Promise.race([more, world.sleep(20).then(() => 'waits')])).toBe(one.late)
  })

  test('however much payers have, 2,000 payments of each of them wait, and 20,000 of all, beside 64 of each', async () => {
    const underWay = openQuick(10n ** 9n)
    expect((await crowd(underWay, 2_001)).busy).toHaveLength(1)
    for (let n = 0; n < 9; n++)
      expect((await crowd(underWay, 2_000, { payer: `payer ${n}` })).busy).toHaveLength(0)
    // Eight of each have entered, so that there is room for 80.
    expect((await crowd(underWay, 200, { payer: 'late' })).busy).toHaveLength(200 - 80)
    expect((await crowd(underWay, 100, { payer: 'later' })).busy).toHaveLength(100 - 64)
  })

  test('what was made to one payee lets no more be under way to another', async () => {
    const underWay = openQuick(1_000n)
    let [at, made] = [0, 0]
    while (made < 100) {
      const { entered } = await crowd(underWay, 20, { to: `self${at++ % 2}` })
      for (const nonce of entered)
        underWay.leave(makePayment(nonce, 1n, nonce.split(' ')[0]), 'made')
      made += entered.length
    }
    const { entered: there } = await crowd(underWay, 20, { to: 'victim' })
    expect(there).toHaveLength(8)
  })

  test('a payee whose payers failed too often has one payment of each new payer under way', async () => {
    const underWay = openQuick(1_000n)
    const { entered } = await crowd(underWay, 20, { unprovenMax: 1 })
    expect(entered).toEqual(['shop 0'])
    underWay.leave(makePayment('shop 0', 1n), 'made')
    await world.sleep(30)
    expect(entered).toEqual(['shop 0', 'shop 1', 'shop 2'])
  })

  test('a payment that waits for others to its payee holds up none to other payees, whether they wait already or come later', async () => {
    const underWay = openQuick(1_000n)
    const doubted = { to: 'doubted', unprovenMax: 1 }
    const { entered } = await crowd(underWay, 3, doubted)
    expect(entered).toEqual(['doubted 0'])
    expect((await crowd(underWay, 2)).entered).toEqual(['shop 0', 'shop 1'])
    const [more, other] = await Promise.all([
      crowd(underWay, 9, { to: 'full' }),
      crowd(underWay, 1, { to: 'other' }),
    ])
    // Eight of the payer in all.
    expect([more.entered.length, other.entered.length]).toEqual([5, 0])
    underWay.leave(makePayment('doubted 0', 1n, 'doubted'), 'made')
    await world.sleep(30)
    expect(entered).toEqual(['doubted 0', 'doubted 1', 'doubted 2'])
  })
})
