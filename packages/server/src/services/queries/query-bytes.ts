import type { KeptQuery } from '../../model/stored-query.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'

/** An entry of a cache, beside its content. */
const entryBytes = 1024
/** An object or a list, each of its members, a value, and a character where a text has letters beyond Latin ones. */
const groupBytes = 64
const memberBytes = 32
const valueBytes = 32
const charBytes = 2
/** A member of a base query can stand for a condition or a column, with the path of its field. */
const conditionBytes = 512
/** SQL is kept as a tree, of which a character of text makes up to 75 bytes. */
const sqlCharBytes = 80

/** Computes the bytes of memory that a version of a query takes once it is read: more rather than less. */
export function computePlanBytes({ sql = '', base_query, parameters }: KeptQuery): number {
  const { length } = sql
  return entryBytes + length * sqlCharBytes + sumBytes([base_query, parameters], conditionBytes)
}

/** Computes those of the facts that its description needs. */
export function computeFactsBytes(facts: object): number {
  return entryBytes + sumBytes(facts)
}

/** Computes those of a statement. One value of it can be a list of ten thousand texts. */
export function computeStatementBytes(planned: {
  readonly key: string
  readonly statement: CompiledStatement
}): number {
  return entryBytes + sumBytes(planned)
}

function sumBytes(value: unknown, ofMember = memberBytes): number {
  if (typeof value === 'string') return valueBytes + value.length * charBytes
  if (typeof value !== 'object' || value === null) return valueBytes
  let bytes = groupBytes
  if (Array.isArray(value)) for (const item of value) bytes += sumBytes(item, ofMember)
  else
    for (const [name, member] of Object.entries(value))
      bytes += ofMember + name.length * charBytes + sumBytes(member, ofMember)
  return bytes
}
