import type { Entry } from '@tollbase/verify/entry'
import type { DataSetBody, DefinitionBodies, DefinitionKind } from './definitions.ts'

/** The bodies as they are written; the entry of a data set has its content too. */
type WrittenBodies = Omit<DefinitionBodies, 'data_set'> & { readonly data_set: DataSetBody }

type DefinitionOf<K extends DefinitionKind> = {
  readonly kind: K
  readonly id: string
  readonly body: WrittenBodies[K] | undefined
}

/** A definition of any kind with a body of this kind, or its removal. */
export type Definition = { [K in DefinitionKind]: DefinitionOf<K> }[DefinitionKind]

export function makeDefinitionEntry({ kind, id, body }: Definition): Entry {
  return {
    header: { type: 'definition', kind, id, ...(body === undefined && { deleted: true }) },
    body: body === undefined ? '' : JSON.stringify(body),
  }
}
