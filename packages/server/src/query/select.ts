import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import type { FieldPath } from './condition.ts'
import { extendPath, extendPointer } from './field-path.ts'

/**
 * The selected fields of an object: only those named (`keep`), or all but those named (`drop`). A nested selection
 * selects a part of a field's object; in `drop` too it names the part that stays.
 */
export type Selection = {
  readonly mode: 'keep' | 'drop'
  readonly fields: ReadonlyMap<string, Selection | 'whole'>
}

type Draft = boolean | Map<string, Draft>
type SelectPlace = {
  readonly path: FieldPath | readonly []
  readonly pointer: string
  /** The number of fields that may still be named: each becomes a part of the SQL. */
  readonly budget: { fields: number }
}

/** Parses a request's `select`; undefined is the whole record, as it was stored. */
export function parseSelect(select: unknown, pointer = '/select'): Selection | undefined {
  if (select === null || select === undefined || (Array.isArray(select) && select.length === 0))
    return undefined
  if (!isRecord(select)) throw makeInvalidFault(pointer, 'must be an object of field names')
  const root = new Map<string, Draft>()
  collect(select, root, { path: [], pointer, budget: { fields: limits.selectedFieldsMax } })
  return root.size === 0 ? undefined : finish(root)
}

/** Lists the dotted names that a selection gives, or returns `all` if it gives fields that it does not name. */
export function listSelectedPaths(selection: Selection | undefined): readonly string[] | 'all' {
  if (selection === undefined || selection.mode === 'drop') return 'all'
  return [...selection.fields].flatMap(([name, inner]) => {
    const below = inner === 'whole' ? 'all' : listSelectedPaths(inner)
    return below === 'all' ? [name] : below.map((path) => `${name}.${path}`)
  })
}

function collect(
  select: Readonly<Record<string, unknown>>,
  into: Map<string, Draft>,
  place: SelectPlace,
): void {
  for (const [key, wanted] of Object.entries(select)) {
    const pointer = extendPointer(place.pointer, key)
    const path = extendPath(place.path, key, pointer)
    if (--place.budget.fields < 0)
      throw makeInvalidFault(
        pointer,
        `is one field too many: a select names at most ${limits.selectedFieldsMax}`,
      )
    if (typeof wanted === 'boolean') {
      insert(into, path.slice(place.path.length), { wanted, pointer })
    } else if (isRecord(wanted) && Object.keys(wanted).length > 0) {
      collect(wanted, open(into, path.slice(place.path.length), pointer), {
        ...place,
        path,
        pointer,
      })
    } else if (isRecord(wanted)) {
      insert(into, path.slice(place.path.length), { wanted: true, pointer })
    } else {
      throw makeInvalidFault(pointer, 'must be true, false or an object of field names')
    }
  }
}

function insert(
  into: Map<string, Draft>,
  names: readonly string[],
  field: { readonly wanted: boolean; readonly pointer: string },
): void {
  const map = open(into, names.slice(0, -1), field.pointer)
  const name = names.at(-1) ?? ''
  if (map.has(name)) throw makeInvalidFault(field.pointer, 'is selected twice')
  map.set(name, field.wanted)
}

/** Returns the map at the end of the names, created if it is missing. */
function open(
  into: Map<string, Draft>,
  names: readonly string[],
  pointer: string,
): Map<string, Draft> {
  let map = into
  for (const name of names) {
    const next = map.get(name) ?? new Map<string, Draft>()
    if (typeof next === 'boolean') throw makeInvalidFault(pointer, 'is selected twice')
    map.set(name, next)
    map = next
  }
  return map
}

function finish(draft: ReadonlyMap<string, Draft>): Selection {
  const mode = keeps(draft) ? 'keep' : 'drop'
  const fields = new Map<string, Selection | 'whole'>()
  for (const [name, wanted] of draft) {
    if (typeof wanted !== 'boolean') fields.set(name, finish(wanted))
    else if (wanted === (mode === 'keep')) fields.set(name, 'whole')
  }
  return Object.freeze({ mode, fields })
}

/**
 * Returns true if a draft has a wanted field; its object, and every object around it, then lists the wanted fields.
 */
function keeps(draft: ReadonlyMap<string, Draft>): boolean {
  return [...draft.values()].some((wanted) =>
    typeof wanted === 'boolean' ? wanted : keeps(wanted),
  )
}
