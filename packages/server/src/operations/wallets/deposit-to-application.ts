import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { takeDeposit } from '../../services/payments/deposits/take-deposit.ts'
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
