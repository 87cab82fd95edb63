import { makeInvalidFault } from '../../base/fault.ts'
import { toWalletAccount } from '../../projections/ledger-entry.ts'
import { takeDeposit } from '../../services/payments/deposits/take-deposit.ts'
import type { Operation } from '../operation.ts'

export const depositToWallet: Operation<'depositToWallet', 'payments'> = async (
  call,
  { params, body },
) => {
  const address = params.address.toLowerCase()
  // Nobody could ever sign for it.
  if (/^0x0+$/.test(address))
    throw makeInvalidFault('/params/address', 'must be an address that somebody can control')
  return takeDeposit(call, {
    account: toWalletAccount(address),
    app: 'system',
    amount: BigInt(body.amount),
    description: `A deposit to the balance of ${address}`,
  })
}
