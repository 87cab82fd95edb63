import { errorCodes, type FastifyRequest } from 'fastify'
import { BytesInParts } from '../base/bytes-in-parts.ts'

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
  if (!Number.isNaN(told) && told !== parts.length)
    throw new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH()
  return parts.concat()
}

function collectParts(payload: FastifyRequest['raw'], bytesMax: number): Promise<BytesInParts> {
  return new Promise((resolve, reject) => {
    const parts = new BytesInParts()
    const take = (part: Buffer) => {
      parts.add(part)
      if (parts.length > bytesMax) fail(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE())
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
