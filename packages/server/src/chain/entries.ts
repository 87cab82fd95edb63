import { hash } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { entryLengthBytes } from '@tollbase/verify/block'
import { type Entry, formatEntry } from '@tollbase/verify/entry'
import { assert } from '../base/assert.ts'
import { awaitTurn } from '../base/await-turn.ts'
import { concatInTurns } from '../base/concat-in-turns.ts'
import { Fault } from '../base/fault.ts'
import type { RandomPool } from '../base/random-pool.ts'
import { concatHashes, hashBytes } from './merkle.ts'

/** The entries of one append call; they stay together in one block, in their order. */
export type Group = {
  readonly entries: readonly Entry[]
  /** Each entry's length (32 bits, big endian) and bytes: the group's part of the block's body. */
  readonly body: Buffer
  /** 32 bytes for each entry. */
  readonly leafHashes: Buffer
}

const saltBytes = 16
/** Entries that are encoded without a pause, and the characters of their bodies; a single one may be longer. */
const entriesAtOnce = 256
const charsAtOnce = 128 * 1024

/**
 * Encodes and hashes once; what the block holds are these bytes. Where salts are given, each entry gets one. Faults
 * PAYLOAD_TOO_LARGE where no block could hold the group.
 */
export function encodeGroup(plain: readonly Entry[], salts?: RandomPool): Group {
  assert(plain.length > 0, 'a group has entries')
  const entries = salts === undefined ? plain : addSalts(plain, salts)
  const texts = entries.map(({ header, body }) => formatEntry(header, body))
  const lengths = texts.map(computeLength)
  const total = lengths.reduce((sum, length) => sum + entryLengthBytes + length, 0)
  refuseLong(total)

  const body = Buffer.allocUnsafe(total)
  const leafHashes = Buffer.allocUnsafe(entries.length * hashBytes)
  let at = 0
  texts.forEach((text, index) => {
    const start = at + entryLengthBytes
    const end = start + body.write(text, start)
    // The byte before the entry is RFC 6962's leaf prefix for as long as the entry is hashed, which saves a copy.
    body[start - 1] = 0
    hash('sha256', body.subarray(start - 1, end), 'buffer').copy(leafHashes, index * hashBytes)
    body.writeUInt32BE(end - start, at)
    at = end
  })
  assert(at === total, 'the entries fill their group')
  return { entries, body, leafHashes }
}

/** Returns true if a group is better encoded in turns. */
export function isLong(entries: readonly Entry[]): boolean {
  return findRunEnd(entries, 0) < entries.length
}

/** The same as encodeGroup; others have their turns meanwhile. */
export async function encodeInTurns(plain: readonly Entry[], salts?: RandomPool): Promise<Group> {
  if (plain.length > limits.blockEntriesMax)
    throw tooLarge(`more than ${limits.blockEntriesMax} entries`)
  const runs: Group[] = []
  let bytes = 0
  for (let from = 0, to: number; from < plain.length; from = to) {
    if (from > 0) await awaitTurn()
    to = findRunEnd(plain, from)
    const run = encodeGroup(plain.slice(from, to), salts)
    bytes += run.body.length
    refuseLong(bytes)
    runs.push(run)
  }
  return {
    entries: runs.flatMap(({ entries }) => entries),
    body: await concatInTurns(runs.map(({ body }) => body)),
    leafHashes: concatHashes(runs.map(({ leafHashes }) => leafHashes)),
  }
}

/** Returns the place behind the last entry that is encoded together with the one at `from`. */
function findRunEnd(entries: readonly Entry[], from: number): number {
  const last = Math.min(entries.length, from + entriesAtOnce)
  let chars = entries[from]?.body.length ?? 0
  let to = from + 1
  while (to < last) {
    chars += entries[to]?.body.length ?? 0
    if (chars > charsAtOnce) break
    to += 1
  }
  return to
}

function refuseLong(bytes: number): void {
  if (bytes > limits.blockBytesMax) throw tooLarge(`more than ${limits.blockBytesMax} bytes`)
}

/** Adds a salt of its own to each entry: a reader of one entry and its salt learns nothing of its neighbours. */
function addSalts(entries: readonly Entry[], random: RandomPool): Entry[] {
  // Object.assign is several times as fast as spreading the header, and there may be thousands of entries.
  return entries.map(({ header, body }) => ({
    header: Object.assign({}, header, { salt: random.text(saltBytes, 'base64url') }),
    body,
  }))
}

function computeLength(text: string): number {
  const length = Buffer.byteLength(text)
  // Half of a surrogate pair would be stored as another character, and a replay would see a text that differs from
  // the applied one.
  assert(length === text.length || !/\p{Surrogate}/u.test(text), 'an entry is well-formed Unicode')
  return length
}

function tooLarge(problem: string): Fault {
  return new Fault('PAYLOAD_TOO_LARGE', {
    message: `This needs ${problem} in one block; send it in parts.`,
  })
}
