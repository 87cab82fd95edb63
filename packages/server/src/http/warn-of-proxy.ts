import type { FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'

/** Ranges of addresses from which a proxy of the operator's own comes. */
const near = ['loopback', 'linkLocal', 'private', 'uniqueLocal']

/**
 * Creates a hook that says once, in the log, that requests come through a proxy near us that is not trusted: then all
 * who come through it are one caller, with one rate, and one stranger can use it up for all.
 */
export function createProxyWarning(log: Pick<Logger, 'warn'>) {
  let isSaid = false
  return ({ headers, ip }: FastifyRequest, _: unknown, done: HookHandlerDoneFunction): void => {
    const isThrough = headers['x-forwarded-for'] !== undefined && ipaddr.isValid(ip)
    if (!isSaid && isThrough && near.includes(ipaddr.process(ip).range())) {
      isSaid = true
      log.warn(
        { proxy: ip },
        'requests come through a proxy that trust_proxy does not name: all who use it share one address and its rate limits',
      )
    }
    done()
  }
}
