import { limits } from '@tollbase/contract/limits'
import { errorCodes, type FastifyRequest } from 'fastify'
import { concatInTurns } from '../base/concat-in-turns.ts'

/**
 * Collects a body in one Buffer. Fastify would copy the parts of a long one at once, while all others wait. Refuses, as
 * Fastify does, a body beyond the route's limit and one that is not as long as its Content-Length says.
 */
export async function collectBody(
  request: FastifyRequest,
  payload: FastifyRequest['raw'],
): Promise<Buffer> {
  const { bodyLimit } = request.routeOptions
  const told = Number(request.headers['content-length'] ?? Number.NaN)
  if (told > bodyLimit) throw new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE()
  const parts = await collectParts(payload, bodyLimit)
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  if (!Number.isNaN(told) && told !== length)
    throw new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH()
  // Copied in any case: a short part would keep alive the memory that the socket was read into.
  return length > limits.bodyBytesAtOnce ? concatInTurns(parts) : Buffer.concat(parts, length)
}

function collectParts(payload: FastifyRequest['raw'], bytesMax: number): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    const take = (part: Buffer) => {
      parts.push(part)
      length += part.length
      if (length > bytesMax) fail(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE())
    }
    const stop = () => payload.off('data', take).off('end', finish).off('error', fail)
    const finish = () => {
      stop()
      resolve(parts)
    }
    const fail = (error: Error) => {
      stop()
      reject(error)
    }
    payload.on('data', take).on('end', finish).on('error', fail).resume()
  })
}
