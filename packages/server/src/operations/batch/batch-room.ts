import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { PreparedRecord, SentRecord } from '../../services/records/prepare-records.ts'

/**
 * The room for what a batch reads and makes. A batch that needs more is refused as soon as that is known: a few operations
 * whose conditions match thousands of records, or many that name long ones, would fill the memory before any block refuses
 * them.
 */
export class BatchRoom {
  #entries = 0
  /** Characters of the bodies, which have at least as many bytes. */
  #chars = 0
  #readBytes = 0

  /** The bytes of records that the batch may still read by their keys. */
  get readBytesLeft(): number {
    return limits.batchReadBytesMax - this.#readBytes
  }

  /** Notes records that were read; undefined where there was no room for them, which is 413. */
  noteRead<T extends { readonly body: string }>(rows: readonly T[] | undefined): readonly T[] {
    if (rows === undefined)
      throw new Fault('RESULT_TOO_LARGE', {
        message: `The records that the batch names have more than ${limits.batchReadBytesMax} bytes together; send it in parts`,
      })
    for (const { body } of rows) this.#readBytes += Buffer.byteLength(body)
    return rows
  }

  /** Takes the room of the batch's block for a version; 413 names the operation for which there is none. */
  take(version: PreparedRecord, { title, details }: SentRecord): PreparedRecord {
    this.#entries += 1
    this.#chars += version.body.length
    if (this.#entries <= limits.blockEntriesMax && this.#chars <= limits.blockBytesMax)
      return version
    throw new Fault('PAYLOAD_TOO_LARGE', {
      message: `${title}: up to here the batch makes more than the ${limits.blockEntriesMax} records or ${limits.blockBytesMax} bytes that one block takes; send it in parts`,
      details,
    })
  }
}
