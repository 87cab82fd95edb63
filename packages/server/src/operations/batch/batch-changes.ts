import { limits } from '@tollbase/contract/limits'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import {
  findMemberTextInTurns,
  listElementTextsInTurns,
  mergeObjectTextsInTurns,
} from '../../base/json-text.ts'
import { parseTextInTurns } from '../../base/parse-json-in-turns.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { Collection } from '../../model/readable.ts'
import { compileLive } from '../../projections/collection-store.ts'
import { listSameValueKeys } from '../../projections/project-records.ts'
import { readLatest } from '../../projections/read-records.ts'
import {
  makePreparer,
  type PreparedRecord,
  parseRecordKey,
  refuseLarge,
  type SentRecord,
} from '../../services/records/prepare-records.ts'
import { listUniqueNames } from '../../services/records/unique-names.ts'
import type { BatchRoom } from './batch-room.ts'
import type { Step } from './batch-steps.ts'
import type { ConditionRunner } from './run-with-conditions.ts'

/** The newest version of a record. */
type Latest = { readonly deleted: boolean; readonly body: string }

export type BatchPlace = {
  readonly database: Database
  readonly schema: string
  readonly world: World
  readonly runConditions: ConditionRunner
  /** The room of the whole batch. */
  readonly room: BatchRoom
}

/**
 * The versions that a batch's operations make of one collection's records, in order. The caller must be in the
 * exclusive section of the collection, with tables that show every earlier write.
 */
export class BatchChanges {
  readonly #place: BatchPlace
  readonly #collection: Collection
  readonly #prepare: (sent: SentRecord) => Promise<PreparedRecord>
  readonly #onlyNew: boolean
  /** Newest versions as far as they are known; undefined where there is none. */
  readonly #latest = new Map<string, Latest | undefined>()
  /** Names of new records, where only new ones are wanted. */
  readonly #names = new Set<string>()
  readonly #created: string[] = []

  constructor(place: BatchPlace, collection: Collection, strict: boolean) {
    this.#place = place
    this.#collection = collection
    this.#prepare = makePreparer(collection, place.world)
    this.#onlyNew = strict || collection.collection_type === 'event'
  }

  /** Applies an operation and returns the versions that it makes. */
  async apply(step: Step): Promise<PreparedRecord[]> {
    const made =
      step.operation === 'create'
        ? [this.#place.room.take(await this.#create(step.sent), step.sent)]
        : await this.#change(step)
    for (const { key, deleted, body } of made) this.#latest.set(key, { deleted, body })
    return made
  }

  /**
   * Refuses values of unique fields that are there, where only new records are wanted. `mayRead` is true where the
   * caller may know the keys of other records.
   */
  async refuseSame(mayRead: boolean): Promise<void> {
    if (!this.#onlyNew || this.#created.length === 0) return
    const { indexes, table, name } = this.#collection
    for (const { fields } of indexes.filter(({ unique }) => unique)) {
      const place = { schema: this.#place.schema, table, fields, bodies: this.#created }
      const [same] = await listSameValueKeys(this.#place.database, place)
      if (same !== undefined)
        throw makeExistsFault(
          `${mayRead ? `The record ${same}` : 'A record'} of ${name} has the same ${fields}`,
        )
    }
  }

  async #create(sent: SentRecord): Promise<PreparedRecord> {
    const record = await this.#prepare(sent)
    if (!this.#onlyNew) return record
    const { name } = this.#collection
    const isThere = (await this.#findNewest(record.key)) !== undefined
    const taken = listUniqueNames(record, this.#collection).find((one) => this.#names.has(one))
    if (isThere || taken !== undefined)
      throw makeExistsFault(
        `${sent.title}: there is a record ${record.key} in ${name} already`,
        sent,
      )
    for (const one of listUniqueNames(record, this.#collection)) this.#names.add(one)
    this.#created.push(record.body)
    return record
  }

  async #change(step: Step): Promise<PreparedRecord[]> {
    const { sent, key } = step
    if (step.conditions !== undefined) {
      const bodies = await this.#listMatching(step)
      const made: PreparedRecord[] = []
      for (const latest of bodies) made.push(await this.#makeChanged(step, latest))
      return made
    }
    const latest = key && (await this.#findNewest(key.text))
    if (latest === undefined || latest.deleted) {
      throw new Fault('RECORD_NOT_FOUND', {
        message: `${sent.title}: there is no record ${key?.text} in ${this.#collection.name}`,
        details: { field: sent.pointer, ...sent.details },
      })
    }
    return [await this.#makeChanged(step, latest.body)]
  }

  async #makeChanged(step: Step, latest: string): Promise<PreparedRecord> {
    return this.#place.room.take(await this.#merge(step, latest), step.sent)
  }

  async #merge({ operation, sent }: Step, latest: string): Promise<PreparedRecord> {
    const isUpdate = operation === 'update'
    const merged = await mergeObjectTextsInTurns(latest, sent.text, (added, all) => {
      // A store refuses such a record, too: it takes long to merge and to judge.
      const { objectMembersMax: most } = limits
      if (isUpdate && added > 0 && all > most)
        throw makeInvalidFault(sent.pointer, `makes an object of more than ${most} members`)
    })
    if (isUpdate) {
      return this.#prepare({ ...sent, text: merged, value: await parseTextInTurns(merged) })
    }
    // A record that breaks a schema that came later can still be deleted.
    const body = await mergeObjectTextsInTurns(merged, '{"deleted":true}')
    refuseLarge(body, sent)
    return { key: await this.#readKey(body), deleted: true, body }
  }

  /** Newest versions of the records that match, as the operations before have left them. */
  async #listMatching({ conditions, key, sent }: Step): Promise<string[]> {
    const { table, primary_column } = this.#collection
    const only = key && { [primary_column]: { is: key.value } }
    const find = only ? { and: [only, conditions] } : conditions
    const compiled = compileLive(this.#place.schema, {
      table,
      primaryColumn: primary_column,
      find,
      limit: limits.batchMatchesMax + 1,
    })
    const { records: found } = await this.#place.runConditions(compiled)
    const texts = await listElementTextsInTurns(found ?? '')
    if (found === null || texts.length > limits.batchMatchesMax) {
      throw new Fault('RESULT_TOO_LARGE', {
        message: `${sent.title}/conditions match more than ${limits.batchMatchesMax} records, or more bytes than one block takes; narrow them`,
        details: { field: `${sent.title}/conditions`, matches_max: limits.batchMatchesMax },
      })
    }
    const bodies: string[] = []
    for (const text of texts) {
      const recordKey = await this.#readKey(text)
      const latest = this.#latest.get(recordKey)
      if (!this.#latest.has(recordKey)) bodies.push(text)
      else if (latest !== undefined && !latest.deleted) bodies.push(latest.body)
    }
    return bodies
  }

  async #findNewest(key: string): Promise<Latest | undefined> {
    if (!this.#latest.has(key)) await this.load([key])
    return this.#latest.get(key)
  }

  /** Reads the newest versions of records that operations name, all in one query. */
  async load(keys: readonly string[]): Promise<void> {
    const { table } = this.#collection
    const { database, schema, room } = this.#place
    const bytesMax = room.readBytesLeft
    const rows = room.noteRead(await readLatest(database, { schema, table, keys, bytesMax }))
    for (const key of keys) this.#latest.set(key, undefined)
    for (const { key, deleted, body } of rows) this.#latest.set(key, { deleted, body })
  }

  async #readKey(text: string): Promise<string> {
    const { primary_column: primary } = this.#collection
    const key = await findMemberTextInTurns(text, primary)
    return parseRecordKey(key === undefined ? undefined : JSON.parse(key), `/${primary}`)
  }
}

function makeExistsFault(message: string, sent?: SentRecord): Fault {
  return new Fault('RECORD_EXISTS', {
    message,
    ...(sent && { details: { field: sent.pointer, ...sent.details } }),
  })
}
