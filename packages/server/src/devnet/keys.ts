import { join } from 'node:path'
import { assert } from '../base/assert.ts'
import { isRecord } from '../base/is-record.ts'
import type { World } from '../base/world.ts'
import { decodeHex, encodeHex, hashKeccak, isHash } from '../x402/hex.ts'
import { readIfThere, writeWhole } from './files.ts'

/** Private keys of 32 bytes that hold devnet money only. */
export type DevnetKeys = {
  /** Pays the gas of settlements. */
  readonly gas: Buffer
  /** Receives payments and signs payouts. */
  readonly treasury: Buffer
  /** Sends anchors; made of the key for gas, as older folders have no other. */
  readonly anchors: Buffer
  /** Publishes data; made in the same way. */
  readonly publisher: Buffer
}

/** Loads the keys of the folder, made at the first start; readable by their owner only. */
export function loadDevnetKeys(folder: string, world: World): DevnetKeys {
  const file = join(folder, 'keys.json')
  const text = readIfThere(file)
  if (text === undefined) {
    // The chance that 256 random bits are no valid key is 2^-128.
    const keys = { gas: world.randomBytes(32), treasury: world.randomBytes(32) }
    const shown = { gas: encodeHex(keys.gas), treasury: encodeHex(keys.treasury) }
    writeWhole(file, `${JSON.stringify(shown, undefined, 2)}\n`, 0o600)
    return addMadeKeys(keys)
  }
  const value: unknown = JSON.parse(text)
  assert(isRecord(value), `${file} holds an object`)
  return addMadeKeys({
    gas: parseKey(value.gas, file),
    treasury: parseKey(value.treasury, file),
  })
}

function addMadeKeys(keys: Pick<DevnetKeys, 'gas' | 'treasury'>): DevnetKeys {
  const make = (use: string) =>
    Buffer.from(hashKeccak(Buffer.concat([keys.gas, Buffer.from(`tollbase devnet ${use}`)])))
  return { ...keys, anchors: make('anchors'), publisher: make('publisher') }
}

function parseKey(value: unknown, file: string): Buffer {
  assert(typeof value === 'string' && isHash(value), `${file} holds keys of 32 bytes`)
  return decodeHex(value)
}
