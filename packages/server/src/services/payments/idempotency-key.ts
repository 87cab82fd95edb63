import { makeInvalidFault } from '../../base/fault.ts'
import { findSingleHeader, type RequestInfo } from '../../http/request-info.ts'

/** Reads the name that a caller gives a request: from the header, or from the body, where a wallet's signature covers it. */
export function readIdempotencyKey(
  requestInfo: Pick<RequestInfo, 'headers'>,
  inBody: string | undefined,
): string | undefined {
  const inHeader = findSingleHeader(requestInfo, 'idempotency-key')
  if (inHeader !== undefined && !/^[!-~]{1,200}$/.test(inHeader))
    throw makeInvalidFault('', 'came with an Idempotency-Key that is not 1-200 visible characters')
  if (inHeader !== undefined && inBody !== undefined && inHeader !== inBody)
    throw makeInvalidFault('/idempotency_key', 'must be what the header Idempotency-Key says')
  return inHeader ?? inBody
}
