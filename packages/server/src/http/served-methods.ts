import type { FastifyInstance } from 'fastify'

/** What is served at a path. */
export type Served = {
  /** As `Allow` lists them; empty where nothing is. */
  readonly methods: readonly string[]
  /** What the contract tells who comes with another one. */
  readonly otherwise: string | undefined
}

/** Watches the routes that are added from now on. The paths of `OPTIONS /*` are no places of their own. */
export function watchMethods(fastify: FastifyInstance): (path: string) => Served {
  const places = new Map<string, Place>()
  fastify.addHook('onRoute', ({ url, method, config }) => {
    if (url.includes('*')) return
    const place = places.get(url) ?? newPlace(url)
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

type Place = {
  readonly pattern: RegExp
  readonly methods: Set<string>
  otherwise?: string | undefined
}

function newPlace(url: string): Place {
  return { pattern: patternOf(url), methods: new Set() }
}

function patternOf(url: string): RegExp {
  return new RegExp(`^${url.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
