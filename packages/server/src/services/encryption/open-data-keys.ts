import type { Logger } from 'pino'
import { awaitWithin } from '../../base/await-within.ts'
import { DataKeys } from './data-keys.ts'
import type { MasterKeyringOptions } from './master-keyring.ts'

/** Time between two looks for data keys that an older master key wraps. */
const rewrapEveryMs = 60_000
/** The time that a look gets to end by itself. */
const endMs = 5_000

/** Opens the keys of encrypted collections; where the master key was changed, they are wrapped anew beside the work. */
export function openDataKeys(options: MasterKeyringOptions & { readonly log: Logger }): {
  readonly dataKeys: DataKeys
  readonly close: () => Promise<void>
} {
  const { world, log } = options
  const dataKeys = new DataKeys(options)
  const rewrap = async () => {
    try {
      const count = await dataKeys.rewrap()
      if (count > 0) log.info({ count }, 'data keys were wrapped by the new master key')
    } catch (error) {
      log.error({ error }, 'data keys cannot be wrapped by the present master key')
    }
  }
  const trial = dataKeys
    .tryCommand()
    .catch((error) => log.error({ error }, 'the command for data keys does not work'))
  let running = trial.then(rewrap)
  const stop = world.every(rewrapEveryMs, () => {
    dataKeys.forgetOld()
    running = running.then(rewrap)
  })
  const close = async () => {
    stop()
    // A key manager may hang; what is not wrapped anew is so after the next start.
    await awaitWithin(running, { world, ms: endMs, otherwise: undefined })
  }
  return { dataKeys, close }
}
