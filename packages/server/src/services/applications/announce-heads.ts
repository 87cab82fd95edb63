import { Mutex } from '../../base/mutex.ts'
import type { Chain } from '../../chain/chain.ts'
import type { ApplicationRecord } from '../../model/application.ts'
import { getPublishChoice } from '../../model/publication.ts'
import type { Anchors, Head } from '../../projections/anchors.ts'

/** Heads of one group of entries. */
const headsAtOnceMax = 1_000

type Announced = { readonly application: ApplicationRecord; readonly chain: Chain }

/**
 * Writes the heads of chains that grew into the system chain, so that one root covers all of them. Each is an entry
 * of its own: a proof shows one, and tells nothing of other applications.
 */
export class Announcer {
  readonly #system: { readonly chain: Chain; readonly anchors: Anchors }
  /** Sizes of the chains when this process last announced them. */
  readonly #announced = new Map<string, number>()
  readonly #mutex = new Mutex()

  constructor(system: { readonly chain: Chain; readonly anchors: Anchors }) {
    this.#system = system
  }

  announce(tenants: readonly Announced[]): Promise<void> {
    return this.#mutex.run(async () => {
      const heads = tenants.flatMap((tenant) => this.#findNewHead(tenant) ?? [])
      for (let at = 0; at < heads.length; at += headsAtOnceMax) {
        const some = heads.slice(at, at + headsAtOnceMax)
        await this.#system.chain.append(
          some.map((head) => ({ header: { type: 'head' }, body: JSON.stringify(head) })),
        )
        for (const { app, size } of some) this.#announced.set(app, size)
      }
    })
  }

  #findNewHead({ application, chain }: Announced): Head | undefined {
    // Anchors cover what the heads cover, so an application without heads has nothing on other chains.
    if (getPublishChoice(application) === 'nothing') return undefined
    const { app_id: app } = application
    const { size, root, height } = chain.head()
    const told = Math.max(this.#announced.get(app) ?? 0, this.#system.anchors.getToldSize(app))
    return size > told ? { app, height, size, root } : undefined
  }
}
