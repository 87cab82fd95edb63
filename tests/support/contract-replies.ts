import { tollbase } from '@tollbase/contract/contract'
import type { Route } from '@tollbase/contract/route'
import { listPaths } from '../../packages/server/src/http/implement.ts'
import { type Check, compileCheck } from '../../packages/server/src/http/validate.ts'

/** Every endpoint by operationId, as data. */
export const routes: readonly (readonly [string, Route])[] = Object.entries(tollbase)

type Checked = { readonly pattern: RegExp; readonly route: Route; readonly check: Check }

const checked: readonly Checked[] = routes.flatMap(([, route]) => {
  const check = compileCheck(route.reply)
  return listPaths(route).map((path) => ({
    pattern: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/:\w+/g, '[^/]+')}$`),
    route,
    check,
  }))
})

/** Throws where a successful reply breaks the contract. */
export function checkReply(
  request: { method: string; path: string },
  reply: { status: number; body: unknown; text: string },
): void {
  if (reply.status >= 300 || reply.status === 204) return
  const found = findRoute(request.method, request.path)
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

/** Finds the route that a request reaches; fixed words win over parameters, as in the server. */
export function findRoute(method: string, path: string): Checked | undefined {
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
