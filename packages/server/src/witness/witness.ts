import { join } from 'node:path'
import { FormatError } from '@tollbase/verify/bytes'
import { formatNote, parseCheckpoint, parseVerifierKey } from '@tollbase/verify/checkpoint'
import {
  computeWitnessKeyId,
  encodeCosignedMessage,
  formatCosignature,
  formatWitnessKey,
} from '@tollbase/verify/cosignature'
import { isFields, parseJson, requireCount, requireText } from '@tollbase/verify/fields'
import { makeNamedFolder } from '../base/make-folder.ts'
import { SetupError } from '../base/setup-error.ts'
import type { World } from '../base/world.ts'
import { createSigningKey, loadSigner, type Signer } from '../chain/signing.ts'
import { lockFolder } from '../database/embedded/lock.ts'
import { readIfThere, writeWhole } from '../devnet/files.ts'
import { type FollowedLog, type Look, observeLog, WitnessTrouble } from './follow-log.ts'

/** The checkpoint of a log that was signed last, and with a contradiction the one that it did not sign. */
export type KeptLog = {
  readonly origin: string
  /** The note as the log signed it. */
  readonly note: string
  /** The note with the witness's cosignature; the newest of the same tree. */
  readonly cosigned: string
  readonly contradiction?: {
    readonly kind: string
    readonly problem: string
    readonly note: string
  }
  /** Looks in a row at which the service was there and withheld the log. */
  readonly withheld?: number
}

/** Looks after which a log that is withheld counts as gone. */
const goneLooks = 3

export type Witness = {
  readonly name: string
  /** The witness's verifier key. */
  readonly vkey: string
  readonly listKept: () => readonly KeptLog[]
  /** Looks at a log once, and signs its checkpoint where it goes on from the one before. */
  readonly follow: (log: FollowedLog) => Promise<Look>
  readonly close: () => void
}

/**
 * Opens a witness's folder: its key, and what it signed last. It belongs to one process, as two could sign two
 * histories.
 */
export async function openWitness(options: {
  readonly folder: string
  readonly name: string
  readonly world: World
}): Promise<Witness> {
  const { folder, name, world } = options
  makeNamedFolder('--folder', folder)
  const unlock = lockFolder(folder)
  try {
    const keyFile = join(folder, 'key.pem')
    await createSigningKey(keyFile)
    const signer = await loadSigner(keyFile, name)
    const stateFile = join(folder, 'checkpoints.json')
    const kept = readState(stateFile)
    const keep = (log: KeptLog) => {
      kept.set(log.origin, log)
      writeWhole(stateFile, `${JSON.stringify([...kept.values()], undefined, 2)}\n`, 0o600)
    }
    return {
      name,
      vkey: formatWitnessKey(name, signer.publicKey),
      listKept: () => [...kept.values()],
      follow: (log) => follow(log, { kept, keep, signer, world }),
      close: unlock,
    }
  } catch (error) {
    unlock()
    throw error
  }
}

type Parts = {
  readonly kept: ReadonlyMap<string, KeptLog>
  readonly keep: (log: KeptLog) => void
  readonly signer: Signer
  readonly world: World
}

async function follow(log: FollowedLog, { kept, keep, signer, world }: Parts): Promise<Look> {
  const { name: origin } = parseVerifierKey(log.vkey)
  const before = kept.get(origin)
  // A log that forked once is never signed again, whatever it shows later.
  if (before?.contradiction !== undefined) {
    const { kind, note, problem } = before.contradiction
    return { kind: kind === 'fork' ? 'fork' : 'roll-back', note, problem }
  }
  const look = await observeLog(log, before?.note, world).catch((error: unknown) => {
    if (before === undefined || !(error instanceof WitnessTrouble) || !error.isWithheld) throw error
    const withheld = (before.withheld ?? 0) + 1
    keep({ ...before, withheld })
    if (withheld < goneLooks && !isContradicted(origin, kept)) throw error
    const { size } = parseCheckpoint(before.note)
    const problem = `the log had ${size} entries, and the service shows it no more (looks: ${withheld}): ${error.message}`
    return { kind: 'gone' as const, problem }
  })
  // All is on the disk before anybody sees it: after a crash the witness must know what it signed.
  if (look.kind === 'consistent')
    keep({ origin, note: look.note, cosigned: cosign(look.note, signer, world) })
  else if (before !== undefined && look.kind !== 'gone') keep({ ...before, contradiction: look })
  return look
}

/** True if another log of the same service has contradicted itself: then one that is withheld is gone with it. */
function isContradicted(origin: string, kept: Parts['kept']): boolean {
  const service = origin.slice(0, origin.lastIndexOf('/') + 1)
  return [...kept.values()].some(
    (one) => one.contradiction !== undefined && one.origin.startsWith(service),
  )
}

/** Adds the witness's signature of now to a note. */
function cosign(note: string, signer: Signer, world: World): string {
  const { text, signatures } = parseCheckpoint(note)
  const { name, publicKey } = signer
  const time = Math.floor(world.now() / 1000)
  const signature = signer.sign(encodeCosignedMessage(text, time))
  const keyId = computeWitnessKeyId(name, publicKey)
  return formatNote(text, [...signatures, formatCosignature({ name, keyId }, { time, signature })])
}

function readState(file: string): Map<string, KeptLog> {
  const text = readIfThere(file)
  if (text === undefined) return new Map()
  try {
    const value = parseJson(text, file)
    if (!Array.isArray(value)) throw new FormatError(`${file} is not a list`)
    return new Map(value.map((one) => [requireText(one, 'origin'), parseKept(one)]))
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    throw new SetupError(
      `${error.message}: a witness that has forgotten what it signed must not sign; restore ${file} from a copy`,
    )
  }
}

function parseKept(value: unknown): KeptLog {
  if (!isFields(value)) throw new FormatError('a kept checkpoint is an object')
  const note = requireText(value, 'note')
  parseCheckpoint(note)
  const { contradiction, withheld } = value
  return {
    origin: requireText(value, 'origin'),
    note,
    cosigned: requireText(value, 'cosigned'),
    ...(withheld !== undefined && { withheld: requireCount(value, 'withheld') }),
    ...(isFields(contradiction) && {
      contradiction: {
        kind: requireText(contradiction, 'kind'),
        problem: requireText(contradiction, 'problem'),
        note: requireText(contradiction, 'note'),
      },
    }),
  }
}
