/**
 * The steps of a write and of a sale between which a process can die, in the order in which a paid write passes them.
 * Tests make it die at each (World.reach); nothing that is delivered listens.
 */
export const faultPoints = [
  'store.validated',
  'payment.verified',
  'payment.claimed',
  'payment.journaled',
  'payment.broadcast',
  'payment.settled',
  'payment.writeNoted',
  'block.beforeCommit',
  'block.afterCommit',
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
] as const

export type FaultPoint = (typeof faultPoints)[number]
