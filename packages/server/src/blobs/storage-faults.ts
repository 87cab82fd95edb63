import { Fault } from '../base/fault.ts'
import { findErrorCode } from '../base/files.ts'

/** Pause before a retry, since somebody has to make room. */
const retryAfterSeconds = 10
const fullCodes = new Set(['ENOSPC', 'EDQUOT'])
const readOnlyCodes = new Set(['EROFS', 'EIO'])

/** Maps the error of a file system that takes no writes to a fault; any other stays as it is. */
export function toStorageFault(error: unknown): unknown {
  const code = findErrorCode(error)
  if (code === undefined) return error
  const options = { retryAfterSeconds, internal: String(error), cause: error }
  if (fullCodes.has(code)) return new Fault('STORAGE_FULL', options)
  if (readOnlyCodes.has(code)) return new Fault('STORAGE_READ_ONLY', options)
  return error
}
