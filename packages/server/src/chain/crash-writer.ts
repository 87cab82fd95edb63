import { realWorld } from '../base/world.ts'
import type { DatabaseConnection } from '../database/connection.ts'
import { openDatabase } from '../database/database.ts'
import { openChain } from './open-chain.ts'
import { loadSigner } from './signing.ts'
import { makeCopyingApplier, makeEntries } from './testing.ts'

/** The input of the crash test's writer, as JSON. */
export type CrashWriterInput = {
  readonly connection: DatabaseConnection
  readonly schema: string
  readonly origin: string
  readonly keyPath: string
  readonly holder: string
  readonly leaseTtlMs: number
}

/** Appends groups of 1 to 5 entries from eight sides and prints each acknowledged body, until it is killed. */
async function main(): Promise<void> {
  const input: CrashWriterInput = JSON.parse(process.argv[2] ?? '{}')
  const { schema, holder } = input
  const database = await openDatabase({ connection: input.connection, poolSize: 4 })
  const signer = await loadSigner(input.keyPath, 'data.example')
  const applier = makeCopyingApplier(schema)
  const chain = await openChain({ ...input, database, signer, applier, world: realWorld })
  const write = async (side: number) => {
    for (let turn = 0; ; turn++) {
      const bodies = Array.from(
        { length: 1 + (turn % 5) },
        (_, index) => `${holder}-${side}-${turn}-${index}`,
      )
      const { leafIndex } = await chain.append(makeEntries(...bodies))
      process.stdout.write(
        `${bodies.map((body, index) => `${leafIndex + index} ${body}`).join('\n')}\n`,
      )
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, side) => write(side)))
}

await main()
