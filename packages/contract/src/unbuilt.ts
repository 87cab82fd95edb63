import type { Route } from './route.ts'

/** An endpoint that is announced but not built; it answers 501 and its area. */
export type Unbuilt = Pick<Route, 'method' | 'path'> & { readonly area: string }

/**
 * Building an endpoint means removing its line here; the service does not start while both exist. These endpoints
 * are not part of openapi.json.
 */
export const unbuilt: readonly Unbuilt[] = []
