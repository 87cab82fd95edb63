import type { Logger } from 'pino'
import type { Chain } from '../../chain/chain.ts'
import type { ChainOptions } from '../../chain/chain-options.ts'
import { openChain } from '../../chain/open-chain.ts'
import type { Signer } from '../../chain/signing.ts'
import { makeApplier } from '../../projections/make-applier.ts'
import type { Projection } from '../../projections/projection.ts'
import { createSchema } from './create-schema.ts'

export type OwnChainOptions = Pick<
  ChainOptions,
  'database' | 'world' | 'holder' | 'onBlock' | 'memory'
> & {
  readonly log: Logger
  readonly refuseFullDisk?: (() => void) | undefined
  readonly loadSigner: (origin: string) => Promise<Signer>
  /** First part of every chain's origin. */
  readonly serviceName: string
}

/** The name of a chain in checkpoints and block headers. */
export function getChainOrigin(serviceName: string, app: string): string {
  return `${serviceName}/${app}`
}

/** Opens a chain of the service with the tables that its entries make. */
export async function openOwnChain(
  options: OwnChainOptions,
  chain: {
    app: string
    schema: string
    projections: readonly Projection[]
    relaxedTables?: boolean
    refuseGrowth?: NonNullable<ChainOptions['refuseGrowth']>
    /** Called once no other process has the chain any more, before anything of it is applied here. */
    onHeld?: () => void
  },
): Promise<Chain> {
  const { database, world, log, holder, refuseFullDisk } = options
  const { schema, projections, refuseGrowth, onHeld } = chain
  await createSchema(database, schema, projections)
  const origin = getChainOrigin(options.serviceName, chain.app)
  return openChain({
    relaxedTables: chain.relaxedTables === true,
    salted: true,
    database,
    schema,
    origin,
    world,
    holder,
    ...(refuseFullDisk && { refuseFullDisk }),
    ...(refuseGrowth && { refuseGrowth }),
    log,
    signer: await options.loadSigner(origin),
    ...(options.onBlock && { onBlock: options.onBlock }),
    ...(options.memory && { memory: options.memory }),
    applier: makeApplier(schema, projections),
    prepare: async (snapshot) => {
      onHeld?.()
      for (const projection of projections) await projection.load(snapshot, schema)
    },
  })
}
