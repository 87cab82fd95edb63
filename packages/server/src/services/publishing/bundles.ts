import { isDeepStrictEqual } from 'node:util'
import type { Database } from '../../database/database.ts'
import { type BlockBundle, makeBundle, type Publisher, readBasis } from './make-bundle.ts'
import type { Publication } from './outbox.ts'

/** Bundles that are known without their chunks. */
const knownMax = 10_000

type Known = Omit<BlockBundle, 'chunks'>
type Wanted = Pick<Publication, 'app' | 'fromHeight' | 'toHeight'>

/**
 * Makes the bundles of waiting blocks, and remembers what each was made of. So it can say whether the bytes of one
 * would be the same now without making it, however often it is asked: a block can have megabytes, and can wait for days.
 */
export class Bundles {
  readonly #database: Database
  readonly #chunkBytesMax: number
  /** By application and first block, the one that was made longest ago first. */
  readonly #known = new Map<string, Known>()
  /** The last one that was made, with its chunks. */
  #last: BlockBundle | undefined

  constructor(database: Database, chunkBytesMax: number) {
    this.#database = database
    this.#chunkBytesMax = chunkBytesMax
  }

  /** Makes a bundle of the next blocks; undefined where there are none. */
  async makeNext(tenant: Publisher, fromHeight: number): Promise<BlockBundle | undefined> {
    return this.#make(tenant, { fromHeight })
  }

  /** Returns the hash of the bundle as it would be sent now; undefined where the blocks are not there. */
  async findHash(tenant: Publisher, wanted: Wanted): Promise<Buffer | undefined> {
    const known = this.#known.get(toName(wanted))
    if (known !== undefined && (await this.#isCurrent(tenant, known, wanted))) return known.hash
    return (await this.#makeWanted(tenant, wanted))?.hash
  }

  /** Returns the bundle as it is to be sent now; undefined where the blocks are not there. */
  async find(tenant: Publisher, wanted: Wanted): Promise<BlockBundle | undefined> {
    const last = this.#last
    const isLast = last !== undefined && this.#known.get(toName(wanted))?.hash === last.hash
    if (isLast && (await this.#isCurrent(tenant, last, wanted))) return last
    return this.#makeWanted(tenant, wanted)
  }

  async #isCurrent(tenant: Publisher, known: Known, { toHeight }: Wanted): Promise<boolean> {
    if (known.toHeight !== toHeight) return false
    return isDeepStrictEqual(known.basis, await readBasis(this.#database, tenant, known))
  }

  async #makeWanted(
    tenant: Publisher,
    { fromHeight, toHeight }: Wanted,
  ): Promise<BlockBundle | undefined> {
    const bundle = await this.#make(tenant, { fromHeight, toHeight })
    return bundle?.toHeight === toHeight ? bundle : undefined
  }

  async #make(
    tenant: Publisher,
    wanted: { readonly fromHeight: number; readonly toHeight?: number },
  ): Promise<BlockBundle | undefined> {
    const name = toName({ ...wanted, app: tenant.application.app_id })
    // Two of megabytes are not to be in memory at once; and nothing is known of blocks that cannot be read any more.
    this.#last = undefined
    this.#known.delete(name)
    const chunkBytesMax = this.#chunkBytesMax
    const bundle = await makeBundle(this.#database, tenant, { ...wanted, chunkBytesMax })
    if (bundle === undefined) return undefined
    this.#last = bundle
    const { chunks: _, ...known } = bundle
    this.#known.set(name, known)
    const [oldest] = this.#known.keys()
    if (this.#known.size > knownMax && oldest !== undefined) this.#known.delete(oldest)
    return bundle
  }
}

function toName({ app, fromHeight }: Pick<Wanted, 'app' | 'fromHeight'>): string {
  return `${app}:${fromHeight}`
}
