import { checkPolicy } from '../../model/check-policy.ts'
import type { CollectionDefinition } from '../../model/definitions.ts'
import { checkText } from '../../query/operand.ts'

type Settings = Pick<
  CollectionDefinition,
  | 'namespace'
  | 'primary_column'
  | 'sort_column'
  | 'collection_type'
  | 'access_policy'
  | 'schema_definition'
>

const names = [
  'namespace',
  'primary_column',
  'sort_column',
  'collection_type',
  'access_policy',
  'schema_definition',
] as const

/** Returns the settings that the body gives a value; null counts as not given, as the public clients send it. */
export function parseCollectionSettings(
  body: { readonly [K in keyof Settings]?: Settings[K] | null | undefined },
): Partial<Settings> {
  checkPolicy(body.access_policy)
  for (const name of ['primary_column', 'sort_column'] as const) {
    // A column's name becomes a part of records, so it must be text that can be stored.
    if (typeof body[name] === 'string') checkText(body[name], `/${name}`)
  }
  return Object.fromEntries(
    names.flatMap((name) =>
      body[name] === undefined || body[name] === null ? [] : [[name, body[name]]],
    ),
  )
}
