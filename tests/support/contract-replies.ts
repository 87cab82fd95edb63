import { tollbase } from '@tollbase/contract/contract'
import { replyHeaders } from '@tollbase/contract/reply-headers'
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

/** Headers of HTTP, of browsers' rules and of connections, which no operation has for itself. */
const plainHeaders =
  /^(access-control-.*|cache-control|connection|content-(encoding|length|security-policy|type)|date|keep-alive|transfer-encoding|vary|x-content-type-options)$/

const toldHeaders = new Set(Object.keys(replyHeaders).map((name) => name.toLowerCase()))

/** Throws where a reply has a header that the contract does not tell of any operation. */
function checkHeaders(
  request: { method: string; path: string },
  reply: { status: number; headers: Headers },
): void {
  const untold = [...reply.headers.keys()].filter(
    (name) => !toldHeaders.has(name) && !plainHeaders.test(name),
  )
  if (untold.length === 0) return
  const { method, path } = request
  throw new Error(`${method} ${path} answered ${reply.status} against its contract: ${untold}`)
}

/** Throws where a reply breaks the contract: by its headers, or where it is successful by its body. */
export function checkReply(
  request: { method: string; path: string },
  reply: { status: number; headers: Headers; body: unknown; text: string },
): void {
  checkHeaders(request, reply)
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
