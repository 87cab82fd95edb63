import { describe, expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import { PaymentsUnderWay } from './payments-under-way.ts'

const from = `0x${'ab'.repeat(20)}`
/** So long that a test which waits for it has failed. */
const foreverMs = 60_000

function makePayment(nonce: string, value: bigint) {
  return { from, nonce, value }
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
})
