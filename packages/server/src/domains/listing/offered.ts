import { Fault } from '../../base/fault.ts'
import type { CollectionState } from '../tenancy/definitions.ts'

type Used = {
  readonly filter: readonly string[]
  readonly sort: readonly string[]
  readonly select: readonly string[] | 'all'
}

/** Others may use a field only for what its owner offers: a filter on a hidden field would tell its value. */
export function refuseUnoffered(collection: CollectionState, used: Used, history: boolean): void {
  const { offered } = collection.policy
  if (history)
    throw new Fault('FORBIDDEN', {
      message: 'History is for keys of the application that may Read',
    })
  refuse('filter', used.filter, offered.filter)
  refuse('sort', used.sort, offered.sort)
  if (offered.select === undefined) return
  if (used.select === 'all') {
    throw new Fault('FIELD_NOT_OFFERED', {
      message: `Name the fields to select; offered are ${offered.select.join(', ')}`,
      details: { offered: offered.select },
    })
  }
  refuse('select', used.select, offered.select)
}

function refuse(
  use: string,
  names: readonly string[],
  offered: readonly string[] | undefined,
): void {
  if (offered === undefined) return
  const hidden = names.find(
    (name) => !offered.some((one) => name === one || name.startsWith(`${one}.`)),
  )
  if (hidden === undefined) return
  throw new Fault('FIELD_NOT_OFFERED', {
    message: `${hidden} is not offered to ${use} by; offered are ${offered.join(', ') || 'none'}`,
    details: { field: hidden, use, offered },
  })
}
