import type { Unbuilt } from '@tollbase/contract/unbuilt'
import type { FastifyInstance } from 'fastify'
import { Fault } from '../base/fault.ts'
import { type Enter, factsOf, pathsOf } from './implement.ts'

/** Answers 501, naming the area, where an endpoint is not built yet; a wrong key is 401 there as everywhere. */
export function refuseUnbuilt<Call>(
  fastify: FastifyInstance,
  unbuilt: readonly Unbuilt[],
  enter: Enter<Call>,
): void {
  for (const { method, path, area } of unbuilt) {
    const operationId = `${method} ${path}`
    for (const url of pathsOf({ path })) {
      fastify.route({
        method,
        url,
        config: { operationId },
        exposeHeadRoute: method === 'GET',
        handler: async (request) => {
          const facts = factsOf(request, { path })
          await facts.arrive()
          await enter(operationId, { access: 'public' }, facts)
          throw new Fault('NOT_IMPLEMENTED', {
            message: `${area} is not built yet: ${operationId}`,
            details: { area },
          })
        },
      })
    }
  }
}
