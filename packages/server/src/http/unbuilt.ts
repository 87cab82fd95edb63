import type { Unbuilt } from '@tollbase/contract/unbuilt'
import type { FastifyInstance } from 'fastify'
import { Fault } from '../base/fault.ts'
import { type Enter, listPaths, makeRequestInfo } from './implement.ts'

/** Answers 501 with the area where an endpoint is not built yet; a wrong key is 401 as everywhere. */
export function refuseUnbuilt<Call>(
  fastify: FastifyInstance,
  unbuilt: readonly Unbuilt[],
  enter: Enter<Call>,
): void {
  for (const { method, path, area } of unbuilt) {
    const operationId = `${method} ${path}`
    for (const url of listPaths({ path })) {
      fastify.route({
        method,
        url,
        config: { operationId },
        exposeHeadRoute: method === 'GET',
        handler: async (request) => {
          const info = makeRequestInfo(request, { path })
          await info.readBody()
          await enter(operationId, { access: 'public' }, info)
          throw new Fault('NOT_IMPLEMENTED', {
            message: `${area} is not built yet: ${operationId}`,
            details: { area },
          })
        },
      })
    }
  }
}
