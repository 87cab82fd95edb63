import { limits } from '@tollbase/contract/limits'
import { isAscii } from '../../base/is-ascii.ts'
import { getOwnValue, isRecord } from '../../base/is-record.ts'
import { listParts } from './list-parts.ts'

type Schema = Readonly<Record<string, unknown>>

/** The address of a schema that has none of its own. */
const unnamed = 'https://schema.invalid/'

/** The parts of a schema by their addresses, so that a reference is looked up and not looked for. */
export type References = {
  /** Returns the address of the resource that a part belongs to, which its references are relative to. */
  readonly findBase: (part: object) => string
  /** Returns what a reference points to, wherever it stands in the schema; undefined where it points to nothing. */
  readonly find: (base: string, reference: string) => unknown
  /** Returns the part of a resource that has a `$dynamicAnchor`. */
  readonly findDynamic: (base: string, anchor: string) => Schema | undefined
  /** Returns true if the part's `$id` makes an address that is too long. */
  readonly isTooLong: (part: object) => boolean
  /** Returns true if the part stands where a schema may stand. */
  readonly isPart: (part: unknown) => boolean
}

/** Reads the addresses (`$id`, `$anchor`, `$dynamicAnchor`) of all parts of a JSON Schema, as its core says (sections 8 and 9). */
export function readReferences(root: Schema): References {
  const bases = new Map<object, string>()
  const named = new Map<string, Schema>([[unnamed, root]])
  const dynamic = new Map<string, Map<string, Schema>>()
  const tooLong = new Set<object>()
  const read = (part: unknown, outer: string): void => {
    if (!isRecord(part)) return
    const { $id, $anchor, $dynamicAnchor } = part
    // Draft 7 writes an anchor as an id.
    const isAnchor = typeof $id === 'string' && $id.startsWith('#')
    const address = typeof $id === 'string' && !isAnchor ? resolve(outer, $id) : outer
    const isLong = address !== undefined && address.length > limits.schemaAddressCharsMax
    if (isLong) tooLong.add(part)
    const base = address === undefined || isLong ? outer : address
    if (base !== outer) named.set(base, part)
    bases.set(part, base)
    if (isAnchor) named.set(`${base}${$id}`, part)
    if (typeof $anchor === 'string') named.set(`${base}#${$anchor}`, part)
    if (typeof $dynamicAnchor === 'string') {
      named.set(`${base}#${$dynamicAnchor}`, part)
      dynamic.set(base, (dynamic.get(base) ?? new Map()).set($dynamicAnchor, part))
    }
    for (const { part: inner } of listParts(part)) read(inner, base)
  }
  read(root, unnamed)
  return {
    findBase: (part) => bases.get(part) ?? unnamed,
    find: (base, reference) => {
      const [path = '', fragment = ''] = splitFragment(reference)
      const resource = path === '' ? base : resolve(base, path)
      const inside = resource === undefined ? undefined : named.get(resource)
      if (fragment === '' || inside === undefined) return inside
      const name = decodeFragment(fragment)
      if (name === undefined) return undefined
      return name.startsWith('/') ? follow(inside, name) : named.get(`${resource}#${name}`)
    },
    findDynamic: (base, anchor) => dynamic.get(base)?.get(anchor),
    isTooLong: (part) => tooLong.has(part),
    isPart: (part) => typeof part === 'boolean' || (isRecord(part) && bases.has(part)),
  }
}

/** Returns true if a text is a URI, or one relative to another: ASCII, and short enough to be read thousands of times. */
export function isAddress(text: string, base = unnamed): boolean {
  return text.length <= limits.schemaAddressCharsMax && isAscii(text) && URL.canParse(text, base)
}

/** Resolves a reference; undefined where it is no URI. An empty fragment is none. */
function resolve(base: string, reference: string): string | undefined {
  if (!isAddress(reference, base)) return undefined
  const { href } = new URL(reference, base)
  return href.endsWith('#') ? href.slice(0, -1) : href
}

function splitFragment(address: string): readonly string[] {
  const at = address.indexOf('#')
  return at === -1 ? [address] : [address.slice(0, at), address.slice(at + 1)]
}

function decodeFragment(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return undefined
  }
}

/** Follows a JSON pointer (RFC 6901). */
function follow(value: unknown, pointer: string): unknown {
  let found = value
  for (const step of pointer.slice(1).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(found))
      found = /^(0|[1-9][0-9]*)$/.test(name) ? found[Number(name)] : undefined
    else found = isRecord(found) ? getOwnValue(found, name) : undefined
  }
  return found
}
