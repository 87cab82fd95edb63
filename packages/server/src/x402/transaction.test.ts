import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { type Hex, keccak256 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { encodeHex } from './hex.ts'
import { parseTransaction, signTransaction } from './transaction.ts'

test('a transaction is signed to the same bytes and hash as by viem, and read again, for any fields', async () => {
  const big = fc.bigInt({ min: 0n, max: 2n ** 64n })
  const fields = fc.record({
    chainId: fc.integer({ min: 1, max: 2 ** 40 }),
    nonce: fc.bigInt({ min: 0n, max: 2n ** 50n }),
    maxPriorityFeePerGas: big,
    maxFeePerGas: big.map((fee) => fee + 2n ** 64n),
    gas: fc.bigInt({ min: 21_000n, max: 2n ** 40n }),
    to: fc.uint8Array({ minLength: 20, maxLength: 20 }).map(encodeHex),
    data: fc.uint8Array({ maxLength: 400 }).map(encodeHex),
  })
  await fc.assert(
    fc.asyncProperty(fields, async (transaction) => {
      const key = randomBytes(32)
      const { raw, hash } = signTransaction(transaction, key)
      const expected = await privateKeyToAccount(encodeHex(key) as Hex).signTransaction({
        type: 'eip1559',
        ...transaction,
        nonce: Number(transaction.nonce),
        to: transaction.to as Hex,
        data: transaction.data as Hex,
      })
      expect(encodeHex(raw)).toBe(expected)
      expect(hash).toBe(keccak256(expected))
      expect(parseTransaction(raw)).toEqual(transaction)
    }),
    { numRuns: 60 },
  )
})
