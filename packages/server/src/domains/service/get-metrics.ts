import { Fault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import type { Operation } from '../operation.ts'

const loopback = ['127.0.0.1', '::1', '::ffff:127.0.0.1']

export const getMetrics: Operation<'getMetrics'> = async ({ service, caller, facts }) => {
  // Behind a proxy on the same host everybody comes from loopback.
  const isForwarded =
    facts.headers['x-forwarded-for'] !== undefined || facts.headers.forwarded !== undefined
  const isLocal = loopback.includes(facts.remoteAddress) && !isForwarded
  if (caller.kind !== 'operator' && !isLocal) {
    throw new Fault('UNAUTHORIZED', { message: 'Metrics are for the operator, or for loopback' })
  }
  return new HttpReply(await service.info.metrics(), {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
  })
}
