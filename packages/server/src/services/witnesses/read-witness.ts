import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { formatVerifierKey, verifyCheckpoint } from '@tollbase/verify/checkpoint'
import { verifyCosignature } from '@tollbase/verify/cosignature'
import { isFields } from '@tollbase/verify/fields'
import { awaitTurn } from '../../base/await-turn.ts'
import type { World } from '../../base/world.ts'
import { isSignedBy, type Signer } from '../../chain/signing.ts'
import type { Config } from '../../config/config.ts'
import { getJson } from '../../x402/http-json.ts'
import type { SystemChain } from '../applications/tenants.ts'

/** A note that a witness gives of a log of this service, and what its signatures say. */
export type JudgedNote = {
  readonly app: string
  readonly origin: string
  readonly checkpoint: string
  /** Entries of the log, and the seconds since 1970 that the witness states; undefined if either has not signed. */
  readonly signed: { readonly size: number; readonly time: number } | undefined
}

type Told = Pick<JudgedNote, 'app' | 'origin' | 'checkpoint'>

const deadlineMs = 10_000
const answerBytesMax = 4 * 1024 * 1024
/** Logs of one witness that are looked at. */
const logsMax = 10_000

/**
 * Reads the notes of a witness, by application. The witness may be hostile, so others have their turns meanwhile: its
 * page is parsed in slices; of each log the first note counts, and only logs that there are; a note that is among those
 * of `before` is not judged again.
 */
export async function readWitness(
  { key, url }: Config['witnesses'][number],
  parts: { readonly system: SystemChain; readonly world: World },
  before: ReadonlyMap<string, JudgedNote>,
): Promise<ReadonlyMap<string, JudgedNote>> {
  const { system, world } = parts
  const notes = new Map<string, JudgedNote>()
  for (const one of await readLogs(new URL(url), world)) {
    const told = findTold(one, system)
    if (told === undefined || notes.has(told.app)) continue
    const known = before.get(told.app)
    if (known?.checkpoint === told.checkpoint) {
      notes.set(told.app, known)
      continue
    }
    notes.set(told.app, judgeNote(told, { key, signer: system.signer }))
    await awaitTurn()
  }
  return notes
}

async function readLogs(url: URL, world: World): Promise<readonly unknown[]> {
  const agent = new (url.protocol === 'https:' ? SecureAgent : Agent)()
  try {
    const { value } = await getJson({
      ...{ url, agent, world, deadlineMs },
      responseBytesMax: answerBytesMax,
    })
    return isFields(value) && Array.isArray(value.logs) ? value.logs.slice(0, logsMax) : []
  } finally {
    agent.destroy()
  }
}

/** Finds what is told of a log of ours: of an application that there is, or of the service itself. */
function findTold(one: unknown, { chain, applications }: SystemChain): Told | undefined {
  if (!isFields(one)) return undefined
  const { origin, checkpoint } = one
  const service = chain.origin.slice(0, -'system'.length)
  if (typeof origin !== 'string' || typeof checkpoint !== 'string') return undefined
  if (!origin.startsWith(service)) return undefined
  const app = origin.slice(service.length)
  const isThere = app === 'system' || applications.get(app) !== undefined
  return isThere ? { app, origin, checkpoint } : undefined
}

/** Judges whether this service has signed the note, and the witness. */
function judgeNote(
  told: Told,
  { key, signer }: { readonly key: string; readonly signer: Signer },
): JudgedNote {
  const { origin, checkpoint } = told
  const vkey = formatVerifierKey(origin, signer.publicKey)
  const own = verifyCheckpoint(checkpoint, vkey, isSignedBy)
  const theirs = own.ok ? verifyCosignature(checkpoint, key, isSignedBy) : own
  if (!own.ok || !theirs.ok) return { ...told, signed: undefined }
  return { ...told, signed: { size: own.checkpoint.size, time: theirs.time } }
}
