import type { Logger } from 'pino'
import type { Payments } from '../payments.ts'
import { type ClaimCursor, listEndedClaims, listOpenClaims } from './claim-lists.ts'
import type { Claim } from './claim-store.ts'
import { takeRareLooks } from './rare-looks.ts'

const intervalMs = 5_000
/** A claim this young is most likely in the hands of its request. */
const ageMs = 10_000
/** The time after a payment's end at which its outcome is certain: blocks may lag behind the clock. */
const certainAfterSeconds = 120
const pageSize = 100
/** Claims that are looked at together: each waits for the network, and all that ask at once travel in one batch. */
const atOnceMax = 25

type ListClaims = (
  after: ClaimCursor,
) => Promise<{ claims: Claim[]; next: ClaimCursor | undefined }>

/**
 * Settles, at start and while running, the claims that requests left open: crashed, timed out, or given up by the
 * client; and looks once more at payments that failed, or that a balance paid for, when nobody can execute them any
 * more. The returned function ends it.
 */
export function startReconciler(payments: Payments, log: Logger): () => Promise<void> {
  const { database, world } = payments.ports
  let running: Promise<void> | undefined
  let stopped = false

  const reconcile = (claim: Claim) =>
    payments.reconcile(claim).catch((error: unknown) => {
      const fields = { payment: claim.id, error: String(error) }
      log.warn(fields, 'a payment could not be reconciled; trying again')
    })
  const walk = async (list: ListClaims) => {
    let after: ClaimCursor | undefined = { at: -1n, id: '' }
    while (after !== undefined && !stopped) {
      const { claims, next } = await list(after)
      for (let from = 0; from < claims.length && !stopped; from += atOnceMax)
        await Promise.all(claims.slice(from, from + atOnceMax).map(reconcile))
      after = next
    }
  }
  const round = async (olderThanMs: number) => {
    const beforeSeconds = Math.floor(world.now() / 1000) - certainAfterSeconds
    await walk(async (after) => {
      const claims = await listOpenClaims(database, { olderThanMs, after, limit: pageSize })
      return { claims, next: findCursorAfter(claims, ({ created_at_ms }) => created_at_ms) }
    })
    await walk(async (after) => {
      const claims = await listEndedClaims(database, { beforeSeconds, after, limit: pageSize })
      return { claims, next: findCursorAfter(claims, ({ valid_before }) => valid_before) }
    })
    // After all others, whose money waits.
    await walk(async () => ({
      claims: await takeRareLooks(database, world.now()),
      next: undefined,
    }))
  }
  const start = (olderThanMs: number) => {
    running ??= round(olderThanMs)
      .catch((error: unknown) => {
        log.warn({ error: String(error) }, 'payments could not be reconciled; trying again')
      })
      .finally(() => {
        running = undefined
      })
  }

  start(world.now())
  const stopRounds = world.every(intervalMs, () => start(world.now() - ageMs))
  const stopUpkeep = payments.startUpkeep()
  return async () => {
    stopped = true
    stopRounds()
    await running
    await stopUpkeep()
  }
}

function findCursorAfter(
  claims: readonly Claim[],
  at: (claim: Claim) => bigint,
): ClaimCursor | undefined {
  const last = claims.length === pageSize ? claims.at(-1) : undefined
  return last && { at: at(last), id: last.id }
}
