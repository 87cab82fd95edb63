import { expect } from 'vitest'
import { type Data, newData } from '../support/data.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { sales } from '../views/support.ts'

/** The platform's part of an amount. */
export function platformOf(amount: bigint): bigint {
  return (amount * 2000n) / 10_000n
}

/** What a 402 asks for, in atomic units. */
export function amountOf(required: TestReply): bigint {
  return BigInt(required.body.accepts[0].maxAmountRequired)
}

/** An application with three sales under a policy. */
export async function sellerOf(service: TestService, access_policy: object): Promise<Data> {
  const app = await newData(service)
  const created = await app.create({ name: 'sales', access_policy })
  expect(created.status, created.text).toBe(201)
  const stored = await app.store('sales', sales)
  expect(stored.status, stored.text).toBe(200)
  return app
}
