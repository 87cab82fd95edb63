/** A JSON value. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [member: string]: Json }

/**
 * The canonical query of a view, as `query` of a ViewInfo shows it. Its grammar is the schema ViewQuery of
 * `contract/view-definition.ts`, described in docs/views.md; collections are written `app::collection` in it.
 */
export type ViewDefinition = { readonly [member: string]: Json }
