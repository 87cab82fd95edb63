import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { FormatError } from '@tollbase/verify/bytes'
import { formatVerifierKey, verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { parseWitnessKey, verifyCosignature } from '@tollbase/verify/cosignature'
import { isFields, requireText } from '@tollbase/verify/fields'
import type { Log } from '../../base/log.ts'
import type { World } from '../../base/world.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/config-file.ts'
import { getJson } from '../../x402/http-json.ts'
import type { Tenants } from '../applications/tenants.ts'

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
const deadlineMs = 10_000
const answerBytesMax = 4 * 1024 * 1024
/** Logs of one witness that are looked at. */
const logsMax = 10_000

type Parts = { readonly tenants: Tenants; readonly world: World; readonly log: Log }

/**
 * Reads every so often what the configured witnesses signed of this service's chains. A note counts only with this
 * service's own signature and the witness's, so a witness can leave things out, and can make up nothing.
 */
export function startWitnesses(config: Config, parts: Parts): Witnesses {
  const found = new Map<string, Map<string, Cosignature>>()
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
  const readAll = () =>
    Promise.all(
      config.witnesses.map((witness) =>
        readWitness(witness, found, parts).catch((error: unknown) =>
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

async function readWitness(
  { key, url }: Config['witnesses'][number],
  found: Map<string, Map<string, Cosignature>>,
  parts: Parts,
): Promise<void> {
  const target = new URL(url)
  const agent = new (target.protocol === 'https:' ? SecureAgent : Agent)()
  const limits = { deadlineMs, responseBytesMax: answerBytesMax }
  try {
    const { value } = await getJson({ url: target, agent, world: parts.world, ...limits })
    const logs = isFields(value) && Array.isArray(value.logs) ? value.logs.slice(0, logsMax) : []
    for (const one of logs) if (isFields(one)) note(one, { key, found, parts })
  } finally {
    agent.destroy()
  }
}

/** Notes what a witness tells of one log, where it is ours and newer than what is known. */
function note(
  told: Readonly<Record<string, unknown>>,
  {
    key,
    found,
    parts,
  }: { key: string; found: Map<string, Map<string, Cosignature>>; parts: Parts },
): void {
  const { tenants, log } = parts
  const own = toOwn(told, tenants)
  if (own === undefined) return
  const { app, origin, checkpoint, size } = own
  const signed = verifyCosignature(checkpoint, key)
  if (!signed.ok) return
  const { name: witness } = parseWitnessKey(key)
  const chains = [tenants.system.chain, ...tenants.listOpen().map((one) => one.chain)]
  const chain = chains.find((one) => one.origin === origin)
  if (chain !== undefined && size > chain.head().size)
    log.error(
      { app, witness, signed: size, present: chain.head().size },
      'a witness has signed more entries than this chain has: the database is older than a log that clients have seen',
    )
  const ofApp = found.get(app) ?? new Map<string, Cosignature>()
  const time = new Date(signed.time * 1000).toISOString()
  const before = ofApp.get(key)
  if (before !== undefined && before.size > size) return
  found.set(app, ofApp.set(key, { witness, key, size, time, checkpoint }))
}

/** Returns the application and the note where the note is one that this service signed. */
function toOwn(
  told: Readonly<Record<string, unknown>>,
  { system }: Tenants,
): { app: string; origin: string; checkpoint: string; size: number } | undefined {
  try {
    const checkpoint = requireText(told, 'checkpoint')
    const origin = requireText(told, 'origin')
    const service = system.chain.origin.slice(0, -'system'.length)
    const app = origin.slice(service.length)
    if (!origin.startsWith(service)) return undefined
    const verdict = verifyCheckpoint(checkpoint, formatVerifierKey(origin, system.signer.publicKey))
    const isOurs = verdict.ok && verdict.checkpoint.origin === origin
    return isOurs ? { app, origin, checkpoint, size: verdict.checkpoint.size } : undefined
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}
