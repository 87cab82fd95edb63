import { HttpReply } from '../../../http/reply.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { makeBoughtReply, makeFreeReply } from '../replies/bought-reply.ts'
import { describeChannel, describeVoucher } from './channel-notice.ts'
import type { ChannelOutcome } from './channel-payments.ts'
import { mismatch } from './check-channel-payment.ts'

type Ask = (told: {
  readonly error: string
  readonly correction?: Readonly<Record<string, unknown>>
}) => Promise<HttpReply> | HttpReply

type Final = Extract<ChannelOutcome, { bought: unknown }>

/** Makes the HTTP reply to a payment by a channel; `ask` makes the 402. */
export function makeChannelReply(
  ports: Pick<PaymentPorts, 'files'>,
  outcome: Final,
): Promise<HttpReply>
export function makeChannelReply(
  ports: Pick<PaymentPorts, 'files'>,
  outcome: ChannelOutcome,
  ask: Ask,
): Promise<HttpReply>
export async function makeChannelReply(
  ports: Pick<PaymentPorts, 'files'>,
  outcome: ChannelOutcome,
  ask?: Ask,
): Promise<HttpReply> {
  if ('bought' in outcome)
    return makeBoughtReply(ports, { 'payment-response': outcome.notice }, outcome.bought)
  if ('free' in outcome) return makeFreeReply(ports, await outcome.free())
  if ('refunded' in outcome)
    return new HttpReply(JSON.stringify({ refunded: String(outcome.refunded) }), {
      status: 200,
      headers: { 'payment-response': outcome.notice },
    })
  if (ask === undefined) throw new Error('only what was bought needs no offer')
  if ('refusal' in outcome) return ask({ error: outcome.refusal })
  const { correction: channel } = outcome
  if (channel === undefined) return ask({ error: mismatch, correction: {} })
  const voucherState = describeVoucher(channel)
  const correction = {
    channelState: describeChannel(channel),
    ...(voucherState && { voucherState }),
  }
  return ask({ error: mismatch, correction })
}
