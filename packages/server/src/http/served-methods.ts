import type { FastifyInstance } from 'fastify'

/** The methods that are served at a path, as `Allow` lists them; empty where nothing is. */
export type ServedMethods = (path: string) => readonly string[]

/** Watches the routes that are added from now on. The paths of `OPTIONS /*` are no places of their own. */
export function watchMethods(fastify: FastifyInstance): ServedMethods {
  const places = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  fastify.addHook('onRoute', ({ url, method }) => {
    if (url.includes('*')) return
    const place = places.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() }
    for (const one of [method].flat()) place.methods.add(one)
    places.set(url, place)
  })
  return (path) => {
    const plain = path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
    const found = [...places.values()].filter(({ pattern }) => pattern.test(plain))
    if (found.length === 0) return []
    return [...new Set([...found.flatMap(({ methods }) => [...methods]), 'OPTIONS'])].sort()
  }
}

function patternOf(url: string): RegExp {
  return new RegExp(`^${url.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')}$`)
}
