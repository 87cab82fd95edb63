import { tollbase } from '@tollbase/contract/contract'
import type { Route } from '@tollbase/contract/route'
import { pathsOf } from '../../packages/server/src/http/implement.ts'
import { type Check, checkOf } from '../../packages/server/src/http/validate.ts'

/** Every endpoint by operationId, as data. */
export const routes: readonly (readonly [string, Route])[] = Object.entries(tollbase)

type Checked = { readonly pattern: RegExp; readonly route: Route; readonly check: Check }

const checked: readonly Checked[] = routes.flatMap(([, route]) => {
  const check = checkOf(route.reply)
  return pathsOf(route).map((path) => ({
    pattern: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/:\w+/g, '[^/]+')}$`),
    route,
    check,
  }))
})

/** Throws where a successful reply is not what the contract promises. */
export function checkReply(
  request: { method: string; path: string },
  reply: { status: number; body: unknown; text: string },
): void {
  if (reply.status >= 300) return
  const found = routeOf(request.method, request.path)
  if (found === undefined || found.route.replyType !== undefined) return
  if (reply.body === undefined && found.route.otherReplyTypes !== undefined) return
  try {
    found.check(reply.body, '')
  } catch (error) {
    throw new Error(
      `${request.method} ${request.path} answered against its contract: ${String(error)}\n${reply.text.slice(0, 2000)}`,
    )
  }
}

/** The route that a request reaches; fixed words win over parameters, as in the server. */
export function routeOf(method: string, path: string): Checked | undefined {
  const plain = path
    .replace(/[?#].*$/, '')
    .replace(/\/{2,}/g, '/')
    .replace(/(.)\/$/, '$1')
  return checked
    .filter(({ pattern, route }) => route.method === method && pattern.test(plain))
    .sort((a, b) => parameters(a.route) - parameters(b.route))[0]
}

function parameters(route: Route): number {
  return route.path.split(':').length
}
