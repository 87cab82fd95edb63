import { createCipheriv, createDecipheriv } from 'node:crypto'

/** The content of a store's ticket: a group of entries of an application's chain. */
export type Ticket = {
  /** The application's number. */
  readonly application: number
  readonly height: number
  /** Sequence of the group's first entry. */
  readonly sequence: number
  /** Entries of the group, or `stateAlone`. */
  readonly count: number
}

/** The count in a ticket for a caller without Read: its task tells its state, and nothing of what was stored. */
export const stateAlone = 0

const form = /^task_([0-9a-f]{32})$/

/**
 * A ticket is its position in the log, encrypted: one AES-128 block under a key of this service. So a store
 * needs no row for its task, the task's state is read from the log itself, and a ticket cannot be guessed.
 * Layout: application u32, height u48, sequence u24, count u24, big endian.
 */
export function sealTicket(key: Buffer, ticket: Ticket): string {
  const block = Buffer.alloc(16)
  block.writeUInt32BE(ticket.application, 0)
  block.writeUIntBE(ticket.height, 4, 6)
  block.writeUIntBE(ticket.sequence, 10, 3)
  block.writeUIntBE(ticket.count, 13, 3)
  return `task_${getCiphers(key).seal.update(block).toString('hex')}`
}

/** Decrypts an id; the log says whether it names a real group. */
export function openTicket(key: Buffer, id: string): Ticket | undefined {
  const hex = form.exec(id)?.[1]
  if (hex === undefined) return undefined
  const block = getCiphers(key).open.update(Buffer.from(hex, 'hex'))
  return {
    application: block.readUInt32BE(0),
    height: block.readUIntBE(4, 6),
    sequence: block.readUIntBE(10, 3),
    count: block.readUIntBE(13, 3),
  }
}

type Ciphers = ReturnType<typeof makeCiphers>
const made = new WeakMap<Buffer, Ciphers>()

/**
 * Made once: each block is encrypted by itself (ECB), so one cipher serves all of them, and making one costs more than
 * using it.
 */
function getCiphers(key: Buffer): Ciphers {
  const known = made.get(key)
  if (known !== undefined) return known
  const ciphers = makeCiphers(key)
  made.set(key, ciphers)
  return ciphers
}

function makeCiphers(key: Buffer) {
  return {
    seal: createCipheriv('aes-128-ecb', key, null).setAutoPadding(false),
    open: createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false),
  }
}
