import { createHash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import type { Upload } from './request-info.ts'

export type MeterBounds = {
  readonly world: World
  readonly bytesMax: number
  /** Makes the fault of a body that is longer. */
  readonly makeFault: () => Fault
}

const lookMs = 1_000

type Meter = {
  readonly count: (chunk: Buffer) => void
  /** Tells what is wrong with a body that has arrived. */
  readonly findProblem: () => Fault | undefined
  readonly stop: () => void
}

/** Watches the rate, the length and the hash of a body. */
export function startMeter(
  { sha256 }: Pick<Upload, 'sha256'>,
  { world, bytesMax, makeFault }: MeterBounds,
  fail: (error: Fault) => void,
): Meter {
  const hash = sha256 === undefined ? undefined : createHash('sha256')
  const startedAt = world.now()
  const { patienceMs, bytesPerSecondMin } = limits.upload
  let bytes = 0
  const stop = world.every(lookMs, () => {
    if (world.now() - startedAt <= patienceMs + (bytes / bytesPerSecondMin) * 1000) return
    fail(
      new Fault('REQUEST_TIMEOUT', {
        message: `The upload came more slowly than ${bytesPerSecondMin} bytes a second`,
      }),
    )
  })
  return {
    count: (chunk) => {
      bytes += chunk.length
      hash?.update(chunk)
      if (bytes > bytesMax) fail(makeFault())
    },
    findProblem: () =>
      hash === undefined || hash.digest('hex') === sha256
        ? undefined
        : makeInvalidFault('', 'is not what Content-Digest says'),
    stop,
  }
}
