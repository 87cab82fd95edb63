import type { Entry } from '@tollbase/verify/entry'
import type { DefinitionKind } from './definitions.ts'

export type Definition = {
  readonly kind: DefinitionKind
  readonly id: string
  readonly body: object | undefined
}

export function makeDefinitionEntry({ kind, id, body }: Definition): Entry {
  return {
    header: { type: 'definition', kind, id, ...(body === undefined && { deleted: true }) },
    body: body === undefined ? '' : JSON.stringify(body),
  }
}
