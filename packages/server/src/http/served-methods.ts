import type { FastifyInstance } from 'fastify'

/** The methods served at a path. */
export type Served = {
  /** Methods as `Allow` lists them; empty where nothing is served. */
  readonly methods: readonly string[]
  /** The contract's advice for a request with another method. */
  readonly otherwise: string | undefined
}

/** Collects the routes that are added from now on. `OPTIONS /*` does not count as a path. */
export function watchMethods(fastify: FastifyInstance): (path: string) => Served {
  const places = new Map<string, ServedRoute>()
  fastify.addHook('onRoute', ({ url, method, config }) => {
    if (url.includes('*')) return
    const place = places.get(url) ?? makeServedRoute(url)
    for (const one of [method].flat()) place.methods.add(one)
    place.otherwise ??= config?.route?.otherwise
    places.set(url, place)
  })
  return (path) => {
    const plain = path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
    const found = [...places.values()].filter(({ pattern }) => pattern.test(plain))
    const otherwise = found.find((one) => one.otherwise !== undefined)?.otherwise
    const methods = new Set(found.flatMap((one) => [...one.methods]))
    if (found.length > 0) methods.add('OPTIONS')
    return { methods: [...methods].sort(), otherwise }
  }
}

type ServedRoute = {
  readonly pattern: RegExp
  readonly methods: Set<string>
  otherwise?: string | undefined
}

function makeServedRoute(url: string): ServedRoute {
  return { pattern: compilePattern(url), methods: new Set() }
}

function compilePattern(url: string): RegExp {
  return new RegExp(`^${url.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
