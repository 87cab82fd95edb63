import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { PreparedRecord, SentRecord } from '../../services/records/prepare-records.ts'

/**
 * The room of the block that is to take all versions of a batch. A batch that needs more is refused while they are made:
 * a few operations whose conditions match thousands of records would fill the memory before the block refuses them.
 */
export class BlockRoom {
  #entries = 0
  /** Of the bodies, which have at least as many bytes. */
  #chars = 0

  /** Takes the room for a version; 413 names the operation for which there is none. */
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
