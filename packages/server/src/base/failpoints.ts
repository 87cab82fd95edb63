/**
 * The points at which tests kill the process, in the order in which a paid write passes them (World.failpoint). The
 * shipped service has no handler for them.
 */
export const failpoints = [
  'store.validated',
  'blob.received',
  'blob.published',
  'payment.verified',
  'payment.claimed',
  'payment.journaled',
  'payment.broadcast',
  'payment.settled',
  'payment.writeNoted',
  'block.beforeCommit',
  'block.afterCommit',
  'block.erased',
  'expiry.listed',
  'expiry.deleted',
  'expiry.done',
  'resealing.prepared',
  'resealing.copied',
  'resealing.erased',
  'applier.beforeCommit',
  'applier.afterCommit',
  'view.beforeFilled',
  'view.beforeLive',
  'view.committed',
  'store.beforeReply',
  'payment.delivered',
  'payment.replyKept',
  'payment.booked',
  'payment.beforeReply',
  'payment.marked',
  'channel.deposited',
  'channel.refunded',
  'channel.claimed',
  'publication.kept',
  'publication.sent',
  'publication.confirmed',
] as const

export type Failpoint = (typeof failpoints)[number]
