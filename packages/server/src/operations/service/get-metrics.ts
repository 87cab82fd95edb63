import { Fault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import type { Operation } from '../operation.ts'

export const getMetrics: Operation<'getMetrics', 'readMetrics'> = async ({
  service,
  caller,
  requestInfo,
}) => {
  if (caller.kind !== 'operator' && !isOwnProgram(requestInfo)) {
    throw new Fault('UNAUTHORIZED', {
      message: 'Only the operator, or a program on the same machine, can read metrics',
    })
  }
  return new HttpReply(await service.readMetrics(), {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
  })
}

const loopback = ['127.0.0.1', '::1', '::ffff:127.0.0.1']
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i

/** Behind a proxy on the same machine everybody comes from loopback. */
const proxyHeaders = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-real-ip',
  'forwarded',
  'via',
] as const

/**
 * Returns whether the caller is a program on this machine that asks for itself. A web page in a browser on this
 * machine comes from loopback too: it bears its origin or its site, or it asks for a host name of its own that was
 * made to resolve to loopback (DNS rebinding).
 */
function isOwnProgram({ headers, remoteAddress }: RequestInfo): boolean {
  if (!loopback.includes(remoteAddress)) return false
  if (proxyHeaders.some((name) => headers[name] !== undefined)) return false
  const site = headers['sec-fetch-site'] ?? 'none'
  if (headers.origin !== undefined || (site !== 'none' && site !== 'same-origin')) return false
  return headers.host !== undefined && loopbackHost.test(headers.host)
}
