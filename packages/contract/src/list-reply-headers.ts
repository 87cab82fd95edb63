import type { ReplyHeader } from './reply-headers.ts'
import { canChange, type Route } from './route.ts'

const onEachReply = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy'] as const
const onSales = ['X-PAYMENT-RESPONSE', 'PAYMENT-RESPONSE', 'X-Receipt-Id', 'X-Payment-Id'] as const

/** Lists the headers that a success of a route may have: its own, those of each reply, and those that its form implies. */
export function listSuccessHeaders(route: Route): readonly ReplyHeader[] {
  return [
    ...(route.paid === true ? onSales : []),
    ...(route.paid === true || canChange(route) ? (['Idempotent-Replayed'] as const) : []),
    ...(route.otherReplyTypes?.includes('text/csv') ? (['X-Next-Cursor'] as const) : []),
    ...(route.replyHeaders ?? []),
    ...onEachReply,
  ]
}

/** Lists the headers that tell something about a refusal. Each refusal has those of each reply besides. */
export function listRefusalHeaders(status: number, canWait: boolean): readonly ReplyHeader[] {
  return [
    ...(status === 402 ? (['PAYMENT-REQUIRED', ...onEachReply] as const) : []),
    ...(status === 307 ? (['Location'] as const) : []),
    ...(status === 412 ? (['Tus-Version'] as const) : []),
    ...(status === 416 ? (['Content-Range'] as const) : []),
    ...(canWait ? (['Retry-After'] as const) : []),
    ...(status === 429 ? (['RateLimit', 'RateLimit-Policy'] as const) : []),
  ]
}
