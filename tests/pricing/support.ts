import { expect } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { sales } from '../support/views.ts'

/** Computes the platform's share of an amount. */
export function computePlatformShare(amount: bigint): bigint {
  return (amount * 2000n) / 10_000n
}

/** Reads the price that a 402 asks for, in atomic units. */
export function readAmount(required: TestReply): bigint {
  return BigInt(required.body.accepts[0].maxAmountRequired)
}

/** Creates an application with three sales under a policy. */
export async function createSeller(service: TestService, access_policy: object): Promise<Data> {
  const app = await createData(service)
  const created = await app.create({ name: 'sales', access_policy })
  expect(created.status, created.text).toBe(201)
  const stored = await app.store('sales', sales)
  expect(stored.status, stored.text).toBe(200)
  return app
}
