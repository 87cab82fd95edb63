import { limits } from '@tollbase/contract/limits'

const dayMs = 24 * 3600 * 1000

/**
 * The time that versions are kept, in milliseconds: at least as long as a bought answer, since a payment for a write
 * that was interrupted finds by the log what it wrote.
 */
export function computeKeptMs(days: number): number {
  return Math.max(days * dayMs, limits.keptReplySeconds * 1000)
}
