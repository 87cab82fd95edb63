import type { Settler } from '../purchase.ts'

/** Settles nothing: an account is charged, which is a balance or a channel, or nobody is. */
export const accountSettler: Settler = {
  isSound: () => true,
  isUsed: async () => false,
  verify: refuseToSettle,
  findUse: refuseToSettle,
  readFunds: refuseToSettle,
  settle: refuseToSettle,
  lookup: refuseToSettle,
}

async function refuseToSettle(): Promise<never> {
  throw new Error('a payment out of an account has no money of its own')
}
