import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { changeApplication } from './update-application.ts'

export const archiveApplication: Operation<
  'archiveApplication',
  'world' | 'tenants' | 'payments'
> = async (call, { params }) => {
  const { payments, world } = call.service
  const sinceMs = world.now() - limits.openPaymentSeconds * 1000
  const open = await payments.listOpenPayments(params.app, sinceMs)
  if (open.length > 0) {
    // Their buyers could not fetch what they pay for.
    throw new Fault('CONFLICT', {
      message: `Payments to ${params.app} are under way (${open.length}); archive it when they are settled`,
      details: { open: { payments: open } },
    })
  }
  await changeApplication(call, {
    appId: params.app,
    change: { status: 'archived' },
  })
  return {
    success: true,
    message: `${params.app} is archived; its chain is kept, its wallet answers, and the operator can bring it back`,
  }
}
