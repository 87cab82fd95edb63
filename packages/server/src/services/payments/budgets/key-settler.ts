import type { Settler } from '../purchase.ts'

/** Settles nothing: a balance is charged, or nobody is. */
export const keySettler: Settler = {
  isSound: () => true,
  isUsed: async () => false,
  verify: refuseToSettle,
  findUse: refuseToSettle,
  readFunds: refuseToSettle,
  settle: refuseToSettle,
  lookup: refuseToSettle,
}

async function refuseToSettle(): Promise<never> {
  throw new Error('a payment by a key has no money of its own')
}
