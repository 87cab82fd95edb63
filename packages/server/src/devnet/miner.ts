import { isRecord } from '../base/is-record.ts'
import type { World } from '../base/world.ts'
import type { Rpc } from '../x402/rpc.ts'
import type { PaymentLog } from '../x402/sender.ts'

/** Pauses between two checks of the pool: while transactions come, and when none came for a while. */
const busyPauseMs = 2
const idlePauseMs = 25
/** An anchor comes every few seconds: the pool must not be asked without a pause until the next one. */
const busyForMs = 300
/** Pause after trouble, or where waiting transactions cannot be mined (their fee is too low). */
const troublePauseMs = 500
/** Time after which a block is mined for nothing, as on other networks: what has ended is over by the chain's own time. */
const emptyBlockMs = 60_000

/**
 * Mines all waiting transactions in one block, and an empty one where none came for a minute. Each block costs time that
 * grows with the chain's storage, so a block for each transaction, which anvil makes by itself, would slow down to some
 * hundred payments a second after a few thousand.
 */
export function startMiner(options: {
  readonly rpc: Rpc
  readonly world: World
  readonly log: PaymentLog
}): () => Promise<void> {
  const { world, log } = options
  let stopped = false
  let busyUntil = 0
  let minedAtMs = world.now()
  const loop = async () => {
    while (!stopped) {
      let pauseMs = troublePauseMs
      try {
        const isDue = world.now() >= minedAtMs + emptyBlockMs
        const mined = await mineWaiting(options.rpc, isDue)
        if (isDue || mined === 'mined') minedAtMs = world.now()
        if (mined !== 'nothing waits') busyUntil = world.now() + busyForMs
        if (mined !== 'nothing fits') pauseMs = world.now() < busyUntil ? busyPauseMs : idlePauseMs
      } catch (error) {
        if (!stopped) log.warn({ error }, 'the devnet does not answer')
      }
      await world.sleep(pauseMs)
    }
  }
  const ended = loop()
  return () => {
    stopped = true
    return ended
  }
}

async function mineWaiting(
  rpc: Rpc,
  isDue: boolean,
): Promise<'mined' | 'nothing waits' | 'nothing fits'> {
  const status = await rpc.call('txpool_status', [])
  const isWaiting = isRecord(status) && Number(status.pending) > 0
  if (isWaiting || isDue) await rpc.call('evm_mine', [])
  if (!isWaiting) return 'nothing waits'
  const count = await rpc.call('eth_getBlockTransactionCountByNumber', ['latest'])
  return Number(count) > 0 ? 'mined' : 'nothing fits'
}
