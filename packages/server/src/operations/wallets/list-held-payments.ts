import { makeInvalidFault } from '../../base/fault.ts'
import { readHeldPage } from '../../services/payments/deposits/release-held.ts'
import type { Operation } from '../operation.ts'
import { describeHeld } from './describe-held.ts'

const cursorForm = /^pay_[0-9a-f]{32}$/

export const listHeldPayments: Operation<'listHeldPayments', 'database' | 'tenants'> = async (
  { service },
  { query },
) => {
  const { cursor: after, limit = 100 } = query
  if (after !== undefined && !cursorForm.test(after))
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return describeHeld(await readHeldPage(service, { after, limit }))
}
