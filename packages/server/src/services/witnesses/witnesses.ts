import { FormatError } from '@tollbase/verify/bytes'
import { parseWitnessKey } from '@tollbase/verify/cosignature'
import type { Log } from '../../base/log.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { Tenants } from '../applications/tenants.ts'
import { type JudgedNote, readWitness } from './read-witness.ts'

/** The newest checkpoint of a chain that a witness signed. */
export type Cosignature = {
  /** Name of the witness. */
  readonly witness: string
  /** Verifier key of the witness. */
  readonly key: string
  readonly size: number
  /** The time that the witness states, ISO 8601. */
  readonly time: string
  /** The signed note, with the chain's signature and the witness's. */
  readonly checkpoint: string
}

export type Witnesses = {
  /** Lists the cosignatures of an application's chain, or of the service's own. */
  readonly list: (app: string) => readonly Cosignature[]
  readonly stop: () => Promise<void>
}

const readEveryMs = 30_000

type Found = Map<string, Map<string, Cosignature>>
type Parts = { readonly tenants: Tenants; readonly world: World; readonly log: Log }

/**
 * Reads every so often what the configured witnesses signed of this service's chains. A note counts only with this
 * service's own signature and the witness's, so a witness can leave things out, and can make up nothing.
 */
export function startWitnesses(config: Config, parts: Parts): Witnesses {
  const found: Found = new Map()
  const judged = new Map<string, ReadonlyMap<string, JudgedNote>>()
  config.witnesses.forEach(({ key }, at) => {
    try {
      parseWitnessKey(key)
    } catch (error) {
      if (!(error instanceof FormatError)) throw error
      throw new ConfigError(`witnesses[${at}].key: ${error.message}`)
    }
  })
  const { world, log } = parts
  let running: Promise<unknown> | undefined
  const readOne = async (witness: Config['witnesses'][number]) => {
    const { key } = witness
    const from = { system: parts.tenants.system, world }
    const notes = await readWitness(witness, from, judged.get(key) ?? new Map())
    judged.set(key, notes)
    keepNotes(key, notes.values(), { found, parts })
  }
  const readAll = () =>
    Promise.all(
      config.witnesses.map((witness) =>
        readOne(witness).catch((error: unknown) =>
          log.warn({ witness: witness.url, error: String(error) }, 'a witness was not read'),
        ),
      ),
    )
  const run = () => {
    running ??= readAll().finally(() => {
      running = undefined
    })
  }
  if (config.witnesses.length > 0) run()
  const stop = config.witnesses.length > 0 ? world.every(readEveryMs, run) : () => undefined
  return {
    list: (app) => [...(found.get(app)?.values() ?? [])],
    stop: async () => {
      stop()
      await running
    },
  }
}

/** Keeps what a witness has signed, where it is newer than what is known. */
function keepNotes(
  key: string,
  notes: Iterable<JudgedNote>,
  { found, parts: { tenants, log } }: { readonly found: Found; readonly parts: Parts },
): void {
  const { name: witness } = parseWitnessKey(key)
  const sizes = new Map(tenants.listChains().map((one) => [one.origin, one.head().size]))
  for (const { app, origin, checkpoint, signed } of notes) {
    if (signed === undefined) continue
    const { size } = signed
    const present = sizes.get(origin)
    if (present !== undefined && size > present)
      log.error(
        { app, witness, signed: size, present },
        'a witness has signed more entries than this chain has: the database is older than a log that clients have seen',
      )
    const ofApp = found.get(app) ?? new Map<string, Cosignature>()
    const before = ofApp.get(key)
    if (before !== undefined && before.size > size) continue
    const time = new Date(signed.time * 1000).toISOString()
    found.set(app, ofApp.set(key, { witness, key, size, time, checkpoint }))
  }
}
