import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import {
  formatCommandKeyId,
  isCommandKeyId,
  type KeyCommand,
  KeyCommandRunner,
  type KeyContext,
} from '../../sealing/key-command.ts'
import { createMasterKeyFile, readKeyFile } from '../../sealing/key-file.ts'
import {
  type MasterKeys,
  parseMasterKeys,
  unwrapKey,
  type WrappedKey,
  wrapKey,
} from '../../sealing/local-master-keys.ts'
import { hasDataKeys } from './data-key-store.ts'

export type MasterKeyringOptions = {
  readonly database: Database
  readonly world: World
  /** The file of master keys, made when it is first needed. */
  readonly keyFile: string
  /** Master keys of the environment, which take the place of the file. */
  readonly masterKeys: string | undefined
  /** An external key manager, which wraps in place of all others; these open what they wrapped before. */
  readonly keyCommand?: KeyCommand | undefined
}

/** The master key, or the key manager, that wraps data keys at present. */
export type Wrapper = {
  /** The master key's name in the rows of keys. */
  readonly id: string
  readonly wrap: (plain: Buffer, of: KeyContext) => Promise<WrappedKey>
}

/** The master keys: those of a file or of the environment, or those of an external key manager. */
export class MasterKeyring {
  readonly #options: MasterKeyringOptions
  readonly #runner: KeyCommandRunner | undefined
  #master: Promise<MasterKeys> | undefined

  constructor(options: MasterKeyringOptions) {
    this.#options = options
    this.#runner = options.keyCommand && new KeyCommandRunner(options.keyCommand, options.world)
  }

  /** The time for which unwrapped keys stay in memory; undefined: as long as the process runs. */
  get cacheMs(): number | undefined {
    return this.#options.keyCommand?.cacheMs
  }

  /** Finds what wraps new keys now: the master keys are read anew, as the first of a file may be gone. */
  async findWrapper({ mayCreate }: { readonly mayCreate: boolean }): Promise<Wrapper> {
    const runner = this.#runner
    if (runner !== undefined && !runner.command.unwrapOnly)
      return {
        id: formatCommandKeyId(runner.command),
        wrap: (plain, of) => runner.wrap(plain, of).catch(throwNoKey),
      }
    this.#master = undefined
    const master = await this.#loadMasterKeys({ mayCreate })
    const { randomBytes } = this.#options.world
    return {
      id: master[0].id,
      wrap: async (plain, { owner }) => wrapKey(master, plain, { owner, randomBytes }),
    }
  }

  /** Unwraps a key; UNAVAILABLE where its master key cannot be had now. */
  async unwrap(key: WrappedKey, of: KeyContext): Promise<Buffer> {
    const { masterKey } = key
    if (isCommandKeyId(masterKey)) {
      if (this.#runner === undefined)
        throw makeNoKeyFault(`a data key is under ${masterKey}: set encryption_key_command`)
      return this.#runner.unwrap(key, of).catch(throwNoKey)
    }
    const plain = unwrapKey(await this.#loadMasterKeys({ mayCreate: false }), key, of.owner)
    if (plain !== undefined) return plain
    // The file may have been given another key meanwhile.
    this.#master = undefined
    throw makeNoKeyFault(`the master key ${masterKey} is missing`)
  }

  /** The ids of the master keys that are there. */
  async listIds(): Promise<readonly string[]> {
    const { masterKeys, keyFile, keyCommand } = this.#options
    const keys =
      masterKeys === undefined
        ? await readKeyFile(keyFile)
        : parseMasterKeys(masterKeys, 'TOLLBASE_MASTER_KEY')
    const ids = (keys ?? []).map(({ id }) => id)
    return keyCommand === undefined ? ids : [formatCommandKeyId(keyCommand), ...ids]
  }

  /** Has the command wrap and unwrap a key of no use, so that its mistakes show before they matter. */
  async tryCommand(): Promise<void> {
    const runner = this.#runner
    if (runner === undefined || runner.command.unwrapOnly) return
    const plain = this.#options.world.randomBytes(32)
    const of = { owner: '["tollbase trial",1]', app: '' }
    const opened = await runner.unwrap(await runner.wrap(plain, of), of)
    if (!opened.equals(plain))
      throw new Error(
        'encryption_key_command: unwrap gives another key than the one that was wrapped',
      )
  }

  #loadMasterKeys(options: { readonly mayCreate: boolean }): Promise<MasterKeys> {
    if (this.#master !== undefined) return this.#master
    const loading = this.#readMasterKeys(options)
    this.#master = loading
    loading.catch(() => {
      this.#master = undefined
    })
    return loading
  }

  async #readMasterKeys({ mayCreate }: { readonly mayCreate: boolean }): Promise<MasterKeys> {
    const { masterKeys, keyFile, database, world } = this.#options
    if (masterKeys !== undefined) return parseMasterKeys(masterKeys, 'TOLLBASE_MASTER_KEY')
    const found = await readKeyFile(keyFile)
    if (found !== undefined) return found
    // A new key beside data keys of a lost one would hide the loss.
    if (!mayCreate || (await hasDataKeys(database))) throw makeNoKeyFault(`${keyFile} is missing`)
    await createMasterKeyFile(keyFile, world.randomBytes)
    return requirePresent(await readKeyFile(keyFile), 'the new file of master keys')
  }
}

export function makeNoKeyFault(internal = 'a collection has no data keys'): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'The keys of this encrypted collection are not available now; ask the operator.',
    retryAfterSeconds: 60,
    internal,
  })
}

function throwNoKey(error: unknown): never {
  throw makeNoKeyFault(error instanceof Error ? error.message : String(error))
}
