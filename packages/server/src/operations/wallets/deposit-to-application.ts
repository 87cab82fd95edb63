import { takeDeposit } from '../../services/payments/deposits/take-deposit.ts'
import { toApplicationAccount } from '../../services/payments/ledger-accounts.ts'
import type { Operation } from '../operation.ts'

export const depositToApplication: Operation<'depositToApplication', 'payments'> = async (
  call,
  { params, body },
) =>
  takeDeposit(call, {
    account: toApplicationAccount(params.app),
    app: params.app,
    amount: BigInt(body.amount),
    description: `A deposit to the balance of ${params.app}`,
  })
