import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { World } from '../base/world.ts'
import { readHead } from '../x402/evm-chain.ts'
import { openRpc } from '../x402/rpc.ts'
import type { PaymentLog } from '../x402/sender.ts'
import { writeWhole } from './files.ts'

export type StateKeeper = {
  /** Writes the state now, if there is a new block since the last time. */
  readonly save: () => Promise<void>
  readonly stop: () => Promise<void>
}

const checkEveryMs = 1_000
const pauseMsMin = 5_000
/** Ratio of pause to saving time, however large the state has become. */
const pausePerSaveTime = 20
const dumpDeadlineMs = 120_000
/** About the longest text that JavaScript holds. */
const dumpBytesMax = 500 * 1024 * 1024

/**
 * Writes the chain's state now and then, as a whole file: anvil's own interval writes in place, so
 * a crash in between would leave half a chain. The form is the one that `--load-state` reads.
 */
export function startStateKeeper(options: {
  readonly rpcUrl: string
  readonly file: string
  readonly world: World
  readonly log: PaymentLog
}): StateKeeper {
  const { world, log } = options
  const rpc = openRpc({
    url: options.rpcUrl,
    world,
    deadlineMs: dumpDeadlineMs,
    responseBytesMax: dumpBytesMax,
  })
  let saved: bigint | undefined
  let nextAtMs = 0
  let running: Promise<void> | undefined
  const saveOnce = async () => {
    const head = await readHead(rpc)
    if (head === saved) return
    const startedMs = world.now()
    const dump = await rpc.call('anvil_dumpState', [])
    if (typeof dump !== 'string') throw new Error('anvil_dumpState gave no text')
    writeWhole(options.file, await promisify(gunzip)(Buffer.from(dump.slice(2), 'hex')))
    saved = head
    nextAtMs = world.now() + Math.max(pauseMsMin, pausePerSaveTime * (world.now() - startedMs))
  }
  const save = () => {
    running ??= saveOnce().finally(() => {
      running = undefined
    })
    return running
  }
  const stopTimer = world.every(checkEveryMs, () => {
    if (running !== undefined || world.now() < nextAtMs) return
    save().catch((error: unknown) => log.warn({ error }, 'the devnet could not be saved'))
  })
  return {
    save,
    stop: async () => {
      stopTimer()
      await running?.catch(() => undefined)
      rpc.close()
    },
  }
}
