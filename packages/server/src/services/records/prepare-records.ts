import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord, ownValue } from '../../base/is-record.ts'
import { eachItemText } from '../../base/json-text.ts'
import { RandomPool } from '../../base/random-pool.ts'
import { turn } from '../../base/turn.ts'
import type { World } from '../../base/world.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { readSchema } from '../../model/record-schema.ts'
import { newUlid } from './ulid.ts'

export type Prepared = { readonly key: string; readonly deleted: boolean; readonly body: string }

/** What of a collection decides how records are stored; a collection that is not there yet has the defaults. */
export type Shape = Pick<CollectionState, 'primary_column' | 'schema_definition'>

/** A record as it was sent, and how refusals name it. */
export type Sent = {
  readonly value: unknown
  readonly text: string
  readonly pointer: string
  /** Such as `Record 3`. */
  readonly title: string
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * Checks the records of a store and gives each its key and its final text, or refuses all, naming the first at fault.
 * Others have their turns meanwhile, however long the store is.
 */
export async function prepareRecords(
  request: { text: string; data: readonly unknown[] },
  shape: Shape,
  world: World,
): Promise<Prepared[]> {
  const prepare = preparer(shape, world)
  const records: Prepared[] = []
  let total = 0
  for (const text of eachItemText(request.text, 'data')) {
    const at = records.length
    const [value, pointer, title] = [request.data[at], `/data/${at}`, `Record ${at}`]
    const record = await prepare({ value, text, pointer, title, details: { record: at } })
    records.push(record)
    total += record.body.length
    if (total > limits.blockBytesMax)
      throw new Fault('PAYLOAD_TOO_LARGE', {
        message: `The records with their defaults are larger than ${limits.blockBytesMax} bytes`,
      })
  }
  return records
}

/**
 * What checks records of one collection and gives them their keys and final texts. Others have their turns between
 * records, however many they are and however much the schema says of them.
 */
export function preparer(shape: Shape, world: World): (sent: Sent) => Promise<Prepared> {
  const schema = readSchema(shape.schema_definition)
  const primary = shape.primary_column
  const random = new RandomPool(world)
  let weight = 0
  return async ({ value: record, text, pointer, title, details }) => {
    weight += text.length + schema.weight
    if (weight >= limits.bodyBytesAtOnce) {
      weight = 0
      await turn()
    }
    if (!isRecord(record)) throw invalid(pointer, 'must be an object')
    const [problem] = schema.problems(record)
    if (problem !== undefined) {
      throw new Fault('SCHEMA_VIOLATION', {
        message: `${title}: ${problem.pointer} ${problem.problem}`,
        details: { field: `${pointer}${problem.pointer}`, ...details },
      })
    }
    const given = ownValue(record, primary)
    if (given === null)
      throw invalid(`${pointer}/${primary}`, 'must not be null; leave it out to have it made')
    const key =
      given === undefined ? newUlid(world, random) : recordKey(given, `${pointer}/${primary}`)
    const missing = Object.entries(schema.defaults).filter(
      ([name]) => name !== primary && !Object.hasOwn(record, name),
    )
    if (given === undefined) missing.unshift([primary, key])
    const body = appended(text, missing)
    refuseLarge(body, { title, details })
    return { key, deleted: record.deleted === true, body }
  }
}

/** 413 for the text of a record that is larger than a record may be. */
export function refuseLarge(body: string, { title, details }: Pick<Sent, 'title' | 'details'>) {
  if (Buffer.byteLength(body) <= limits.recordBytesMax) return
  throw new Fault('PAYLOAD_TOO_LARGE', {
    message: `${title} is larger than ${limits.recordBytesMax} bytes`,
    details,
  })
}

/** A record's identity as text: a string is itself, a number its shortest form. */
export function recordKey(value: unknown, pointer: string): string {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw invalid(pointer, 'must be a whole number that a double holds exactly, or a string')
  }
  const key = typeof value === 'number' ? String(value) : value
  if (typeof key !== 'string' || key === '')
    throw invalid(pointer, 'must be a string that is not empty, or a number')
  if (key.length > limits.recordKeyCharsMax)
    throw invalid(pointer, `is longer than ${limits.recordKeyCharsMax} characters`)
  for (let at = 0; at < key.length; at++) {
    if (key.charCodeAt(at) < 0x20) throw invalid(pointer, 'must not contain control characters')
  }
  return key
}

/** The record's own text with the fields that the server adds behind its last one. */
function appended(text: string, fields: readonly (readonly [string, unknown])[]): string {
  if (fields.length === 0) return text
  const open = text.slice(0, text.lastIndexOf('}')).trimEnd()
  const added = fields
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join(',')
  return `${open}${open === '{' ? '' : ','}${added}}`
}
