import { expect } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { connectDevnet } from '../support/payer.ts'
import type { TestService } from '../support/service.ts'

export const watchMs = 15_000
/** Blocks over one that the devnet takes for final, and a few more. */
export const finalBlocks = 70

/** Blocks since a height are taken back, and as many empty ones are there in their place. */
export async function reorganize(service: TestService, since: bigint): Promise<void> {
  const chain = connectDevnet(service)
  const depth = Number((await chain.getBlockNumber({ cacheTime: 0 })) - since)
  await chain.request({ method: 'anvil_reorg' as never, params: [depth, []] as never })
}

/** The same, while the chain makes no block of its own: what was taken back waits for `mine`. */
export async function takeBack(service: TestService, since: bigint): Promise<void> {
  await connectDevnet(service).setAutomine(false)
  await reorganize(service, since)
}

/** Keeps what was signed of a transaction in a block; the returned function has it mined once more. */
export async function keepSigned(
  service: TestService,
  transaction: string,
): Promise<() => Promise<void>> {
  const chain = connectDevnet(service)
  const request = {
    method: 'eth_getRawTransactionByHash' as never,
    params: [transaction] as never,
  }
  const serializedTransaction = (await chain.request(request)) as `0x${string}`
  return async () => {
    // The node may have it still.
    await chain.sendRawTransaction({ serializedTransaction }).catch(() => undefined)
    await chain.mine({ blocks: 1 })
  }
}

/** Lets the watch look, so many times at most, until it has seen what is asked for. */
export async function watchUntil<T>(
  service: TestService,
  see: () => Promise<T | undefined | false>,
  looksMax = 900,
): Promise<T> {
  for (let looks = 0; looks < looksMax; looks++) {
    service.world.passInterval(watchMs)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const seen = await see()
    if (seen !== undefined && seen !== false) return seen
  }
  throw new Error('the watch did not come to it')
}

/** The journal sends the same bytes again; the node may have them, and mines them with the next block. */
export async function sendAgain(service: TestService): Promise<void> {
  service.world.advance(11_000)
  service.world.passInterval(10_000)
  await new Promise((resolve) => setTimeout(resolve, 300))
  await connectDevnet(service).mine({ blocks: 1 })
  service.world.passInterval(10_000)
}

export const readReversal = async (service: TestService, id: string) => {
  const { chain } = service.running.service.tenants.system
  await chain.whenApplied(chain.head().height)
  const [row] = await service.database.query<{ moved: string; lost: string; reason: string }>(
    sql`SELECT moved::text AS moved, lost::text AS lost, reason FROM system.reversal WHERE payment_id = ${id}`,
  )
  return row
}

/** Mines until a reversal of the payment is in the ledger. */
export function awaitReversal(service: TestService, id: string) {
  return watchUntil(service, async () => {
    await connectDevnet(service).mine({ blocks: finalBlocks })
    return readReversal(service, id)
  })
}

export async function expectAuditEqual(service: TestService): Promise<void> {
  const report = await service.whileStopped((config) => audit(config, () => undefined))
  expect(report.equal, JSON.stringify(report)).toBe(true)
}

/** All blocks until now become final, long after every authorization has ended. */
export async function passEnd(service: TestService, seconds = 1_000): Promise<void> {
  const chain = connectDevnet(service)
  service.world.advance(seconds * 1_000)
  await chain.increaseTime({ seconds })
  await chain.mine({ blocks: finalBlocks })
}

/** Reads which transaction has a move that was taken back: null where none has, undefined where it is as it is booked. */
export async function readTakenBack(
  service: TestService,
  id: string,
): Promise<string | null | undefined> {
  const [row] = await service.database.query<{ transaction: string | null }>(
    sql`SELECT transaction FROM operations.taken_back WHERE id = ${id}`,
  )
  return row?.transaction
}
