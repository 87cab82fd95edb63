import { HttpReply } from '../../../http/reply.ts'
import type { ChannelOffer } from '../../../x402/channels/channel-offer.ts'
import { buildPaymentRequired, type Requirement } from '../../../x402/protocol.ts'
import type { UptoOffer } from '../../../x402/upto/upto-offer.ts'

/** Makes the 402 reply for both versions of x402 at once. */
export function makePaymentRequired(asked: {
  url: string
  description: string
  error: string
  requirements: readonly Requirement[]
  uptos: readonly UptoOffer[]
  channels: readonly ChannelOffer[]
}): HttpReply {
  const required = buildPaymentRequired({
    resource: { url: asked.url, description: asked.description, mimeType: 'application/json' },
    requirements: asked.requirements,
    uptos: asked.uptos,
    channels: asked.channels,
    error: asked.error,
  })
  return new HttpReply(JSON.stringify(required.body), {
    status: 402,
    headers: { 'payment-required': required.header },
  })
}
