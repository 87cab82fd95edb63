import { Fault } from '../../base/fault.ts'
import type { HttpReply } from '../../http/reply.ts'
import type { Payment, Presented } from '../../x402/protocol.ts'
import type { Call } from '../call.ts'
import { paidReply } from './paid-reply.ts'
import { claimOfProof } from './parse-payment.ts'
import { type Asking, isByPayer, presentedOf, requestHashOf } from './presented-payment.ts'
import type { PaymentPorts, Way } from './purchase.ts'
import { identityOf } from './stored-payment.ts'

/**
 * The answer that this very request bought before with this very payment. It is asked for before the operation looks
 * at anything: what was paid for is delivered though the collection is gone, private or free by now, and a write is
 * not made again. A payment that is not known, or not repeated exactly, is left to the operation.
 */
export async function keptAnswer(call: Call): Promise<HttpReply | undefined> {
  const { payments } = call.service
  const read = readable(call)
  const paid = read && (await paidBy(payments.ports, read.presented))
  if (read === undefined || paid === undefined) return undefined
  const { payment, way } = paid
  const identity = identityOf(way.network, payment)
  const isPayer = isByPayer(call, payment)
  const sold = await payments.soldBefore({ identity, requestHash: read.hash, payment, isPayer })
  return sold && paidReply(payment, way.network, sold)
}

/** A transfer that says no quote is left to the operation, which judges for whom the caller acts. */
async function paidBy(
  ports: PaymentPorts,
  presented: Presented,
): Promise<{ payment: Payment; way: Way } | undefined> {
  if ('transaction' in presented) return claimOfProof(ports, presented)
  const way = ports.ways.find(({ network }) => network.id === presented.network)
  return way && { payment: presented, way }
}

/** What cannot be read is refused by the operation, after it has judged who asks and for what. */
function readable(asking: Asking): { presented: Presented; hash: string } | undefined {
  try {
    const presented = presentedOf(asking)
    return presented && { presented, hash: requestHashOf(asking.facts) }
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}
