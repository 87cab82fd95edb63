import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { itemTexts } from '../../base/json-text.ts'
import type { World } from '../../base/world.ts'
import { readSchema } from '../collections/record-schema.ts'
import type { CollectionState } from '../tenancy/definitions.ts'
import { newUlid } from './ulid.ts'

export type Prepared = { readonly key: string; readonly deleted: boolean; readonly body: string }

/** What of a collection decides how records are stored; a collection that is not there yet has the defaults. */
export type Shape = Pick<CollectionState, 'primary_column' | 'schema_definition'>

/** Checks the records of a store and gives each its key and its final text, or refuses all, naming the first at fault. */
export function prepareRecords(
  request: { text: string; data: readonly unknown[] },
  shape: Shape,
  world: World,
): Prepared[] {
  const texts = itemTexts(request.text, 'data')
  const schema = readSchema(shape.schema_definition)
  return request.data.map((record, at) => {
    const text = texts[at] ?? ''
    if (!isRecord(record)) throw invalid(`/data/${at}`, 'must be an object')
    const [problem] = schema.problems(record)
    if (problem !== undefined) {
      throw new Fault('SCHEMA_VIOLATION', {
        message: `Record ${at}: ${problem.pointer} ${problem.problem}`,
        details: { field: `/data/${at}${problem.pointer}`, record: at },
      })
    }
    const given = record[shape.primary_column]
    const key =
      given === undefined || given === null
        ? newUlid(world)
        : keyOf(given, `/data/${at}/${shape.primary_column}`)
    const missing = Object.entries(schema.defaults).filter(([name]) => record[name] === undefined)
    if (given === undefined || given === null) missing.unshift([shape.primary_column, key])
    if (given === null)
      throw invalid(
        `/data/${at}/${shape.primary_column}`,
        'must not be null; leave it out to have it made',
      )
    const body = appended(text, missing)
    if (Buffer.byteLength(body) > limits.recordBytesMax) {
      throw new Fault('PAYLOAD_TOO_LARGE', {
        message: `Record ${at} is larger than ${limits.recordBytesMax} bytes`,
        details: { record: at },
      })
    }
    return { key, deleted: record.deleted === true, body }
  })
}

/** A record's identity as text: a string is itself, a number its shortest form. */
function keyOf(value: unknown, pointer: string): string {
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
