import type { Logger } from 'pino'
import { signSweep } from '../../../x402/deposit-address.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import {
  type ClaimCursor,
  listUnsweptClaims,
  noteSweep,
  type UnsweptClaim,
} from '../claims/claim-lists.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { makeRequirement } from '../quotes/quoting.ts'

const intervalMs = 60_000
/** Sweeps of one round, which go out together. */
const sweepsMax = 50
/** A sweep that was reverted so often needs a person; the log names it each time. */
const triesMax = 10
const beginning: ClaimCursor = { at: -1n, id: '' }

/**
 * Sends the money at quotes' own addresses on to the networks' payees, at intervals. The returned function ends it.
 * Pending sweeps are in the claims, so a restart continues where it stopped.
 */
export function startSweeper(ports: PaymentPorts, log: Logger): () => Promise<void> {
  let running: Promise<void> | undefined
  let after = beginning
  const round = async () => {
    after = (await sweepRound(ports, log, after)) ?? beginning
  }
  const start = () => {
    running ??= round()
      .catch((error: unknown) => {
        log.warn({ error: String(error) }, 'deposit addresses could not be swept; trying again')
      })
      .finally(() => {
        running = undefined
      })
  }
  const stop = ports.world.every(intervalMs, start)
  return async () => {
    stop()
    await running
  }
}

/** Sweeps the next claims after the cursor; returns where it stopped, or undefined where there are no more. */
export async function sweepRound(
  ports: PaymentPorts,
  log: Logger,
  after: ClaimCursor = beginning,
): Promise<ClaimCursor | undefined> {
  const page = {
    networks: ports.methods.map(({ network }) => network),
    triesMax,
    after,
    limit: sweepsMax,
  }
  const claims = await listUnsweptClaims(ports.database, page)
  const results = await Promise.allSettled(claims.map((claim) => sweep(ports, claim)))
  results.forEach((result, at) => {
    const isSettled = result.status === 'fulfilled' && result.value.state === 'settled'
    const what = result.status === 'fulfilled' ? result.value : { error: String(result.reason) }
    if (!isSettled) {
      log.warn({ payment: claims[at]?.id, ...what }, 'a deposit address is not swept yet')
    }
  })
  const last = claims.length === sweepsMax ? claims.at(-1) : undefined
  return last && { at: last.created_at_ms, id: last.id }
}

/** Moves a claim's money. The token takes each sweep once, however often and by whomever it is sent. */
async function sweep(ports: PaymentPorts, claim: UnsweptClaim): Promise<Settlement> {
  const { id, amount, quote_id: quoteId, tries } = claim
  const method = ports.methods.find(({ network }) => network.id === claim.network)
  if (method === undefined) return { state: 'pending', reason: 'its network is not configured' }
  const payment = signSweep(ports.depositSecret, method.network, { id, quoteId, value: amount })
  const requirement = makeRequirement(method.network, { amount, quoteId: '', expiresAt: 0 })
  // A reverted transaction stays reverted under its name.
  const name = tries === 0 ? `sweep:${id}` : `sweep:${id}:${tries}`
  const outcome = await method.facilitator.settle(name, payment, requirement)
  if (outcome.state === 'settled') await noteSweep(ports.database, id, 'done')
  if (outcome.state === 'failed') await noteSweep(ports.database, id, 'failed')
  return outcome
}
