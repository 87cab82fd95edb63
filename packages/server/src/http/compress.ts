import { promisify } from 'node:util'
import { type BrotliOptions, brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Below this size a compressed answer saves no packet. */
const bytesMin = 1400
const compressible = /^(text\/|application\/(json|x-ndjson))/
/** As fast as gzip's usual level, and a fifth smaller. */
const brotli: BrotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

const compressors = {
  br: promisify<string | Buffer, BrotliOptions, Buffer>(brotliCompress),
  gzip: promisify<string | Buffer, Buffer>(gzip),
}

/**
 * Compresses answers for clients that accept it (RFC 9110, 12.5.3), whole, so that each still states its length.
 * A receipt's hash is that of the answer before compression.
 */
export function compressAnswers(fastify: FastifyInstance): void {
  // biome-ignore lint/complexity/useMaxParams: as Fastify calls it.
  fastify.addHook('onSend', (request, reply, payload, done) => {
    if (!isWorthIt(request, reply, payload)) return done()
    const vary = reply.getHeader('vary')
    reply.header(
      'vary',
      vary === undefined ? 'Accept-Encoding' : `${String(vary)}, Accept-Encoding`,
    )
    const encoding = chooseEncoding(request.headers['accept-encoding'])
    if (encoding === undefined) return done()
    // By a promise: an error of Fastify, when it writes the answer, is then one of this request. Thrown out of a callback
    // of zlib it would end the process.
    const compressing =
      encoding === 'br' ? compressors.br(payload, brotli) : compressors.gzip(payload)
    return compressing.then((compressed) => {
      reply.header('content-encoding', encoding)
      return compressed
    })
  })
}

function isWorthIt(
  { method }: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): payload is string | Buffer {
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload)
  return (
    isWhole &&
    method !== 'HEAD' &&
    Buffer.byteLength(payload) >= bytesMin &&
    compressible.test(String(reply.getHeader('content-type'))) &&
    !reply.hasHeader('content-encoding')
  )
}

/** Chooses the encoding; undefined where the client takes neither. `*` does not say what it understands. */
function chooseEncoding(accepted: string | string[] | undefined): 'br' | 'gzip' | undefined {
  const names = String(accepted ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.split(';').map((part) => part.trim()))
    .filter(([, quality]) => quality === undefined || !/^q=0(\.0*)?$/.test(quality))
    .map(([name]) => name)
  if (names.includes('br')) return 'br'
  return names.includes('gzip') ? 'gzip' : undefined
}
