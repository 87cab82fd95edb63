import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { getOwnValue, isRecord } from '../../base/is-record.ts'
import type { JsonSource } from '../../base/json-source.ts'
import { addMembers, iterateItemTexts } from '../../base/json-text.ts'
import { RandomPool } from '../../base/random-pool.ts'
import type { World } from '../../base/world.ts'
import type { Collection } from '../../model/readable.ts'
import { openRecordJudge } from '../../model/record-schema.ts'
import { makeUlid } from './ulid.ts'

export type PreparedRecord = {
  readonly key: string
  readonly deleted: boolean
  readonly body: string
}

/**
 * The members of a collection's definition that decide how records are stored; a collection that does not exist yet
 * has the defaults.
 */
export type RecordShape = Pick<Collection, 'primary_column' | 'schema_definition' | 'encrypted'>

/** A record as it was sent, with its name for refusals. */
export type SentRecord = {
  readonly value: unknown
  readonly text: string
  readonly pointer: string
  /** Such as `Record 3`. */
  readonly title: string
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * Checks the records of a store and gives each its key and its final text, or refuses all, naming the first at
 * fault. Other work gets its turn meanwhile, however long the store is.
 */
export async function prepareRecords(
  request: { source: JsonSource; data: readonly unknown[] },
  shape: RecordShape,
  world: World,
): Promise<PreparedRecord[]> {
  const prepare = makePreparer(shape, world)
  const records: PreparedRecord[] = []
  let total = 0
  for (const text of iterateItemTexts(request.source, 'data')) {
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
 * Makes the function that checks records of one collection and gives them their keys and final texts. Other requests
 * have their turns between records, however many there are and however large the schema is.
 */
export function makePreparer(
  shape: RecordShape,
  world: World,
): (sent: SentRecord) => Promise<PreparedRecord> {
  const schema = openRecordJudge(shape.schema_definition)
  const primary = shape.primary_column
  const random = new RandomPool(world)
  return async ({ value: record, text, pointer, title, details }) => {
    if (!isRecord(record)) throw makeInvalidFault(pointer, 'must be an object')
    const [problem] = await schema.listProblems(record, text.length)
    if (problem !== undefined) {
      throw new Fault('SCHEMA_VIOLATION', {
        message: `${title}: ${problem.pointer} ${problem.problem}`,
        details: { field: `${pointer}${problem.pointer}`, ...details },
      })
    }
    const given = getOwnValue(record, primary)
    if (given === null)
      throw makeInvalidFault(
        `${pointer}/${primary}`,
        'must not be null; leave it out to have it made',
      )
    const key =
      given === undefined ? makeUlid(world, random) : parseRecordKey(given, `${pointer}/${primary}`)
    const missing = Object.entries(schema.defaults).filter(
      ([name]) => name !== primary && !Object.hasOwn(record, name),
    )
    refuseMembers(record, { pointer, added: missing.length })
    if (given === undefined) missing.unshift([primary, key])
    const body = addMembers(text, missing)
    refuseLarge(body, { title, details })
    return { key, deleted: record.deleted === true, body }
  }
}

/** Defaults would make a record step by step, as schemas change, that takes long to merge and to judge. */
function refuseMembers(
  record: Readonly<Record<string, unknown>>,
  { pointer, added }: { readonly pointer: string; readonly added: number },
): void {
  const { objectMembersMax: most } = limits
  if (added > 0 && Object.keys(record).length + added > most)
    throw makeInvalidFault(pointer, `has more than ${most} members with the defaults of the schema`)
}

/** 413 for the text of a record that is larger than a record may be. */
export function refuseLarge(
  body: string,
  { title, details }: Pick<SentRecord, 'title' | 'details'>,
) {
  if (Buffer.byteLength(body) <= limits.recordBytesMax) return
  throw new Fault('PAYLOAD_TOO_LARGE', {
    message: `${title} is larger than ${limits.recordBytesMax} bytes`,
    details,
  })
}

/** A record's identity as text: a string is itself, a number its shortest form. */
export function parseRecordKey(value: unknown, pointer: string): string {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw makeInvalidFault(
      pointer,
      'must be a whole number that a double holds exactly, or a string',
    )
  }
  const key = typeof value === 'number' ? String(value) : value
  if (typeof key !== 'string' || key === '')
    throw makeInvalidFault(pointer, 'must be a string that is not empty, or a number')
  if (key.length > limits.recordKeyCharsMax)
    throw makeInvalidFault(pointer, `is longer than ${limits.recordKeyCharsMax} characters`)
  for (let at = 0; at < key.length; at++) {
    if (key.charCodeAt(at) < 0x20)
      throw makeInvalidFault(pointer, 'must not contain control characters')
  }
  return key
}
