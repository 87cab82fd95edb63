import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import { isRecord, ownValue } from '../../base/is-record.ts'
import { itemTexts, mergedText } from '../../base/json-text.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { findLive } from '../../projections/collection-store.ts'
import { keysOfSameValues } from '../../projections/record-projection.ts'
import { latestOf } from '../../projections/record-store.ts'
import {
  type Prepared,
  preparer,
  recordKey,
  refuseLarge,
  type Sent,
} from '../../services/records/prepare-records.ts'
import { namesOf } from '../../services/records/unique-names.ts'
import type { Step } from './batch-steps.ts'

/** The newest version of a record. */
type Latest = { readonly deleted: boolean; readonly body: string }

/**
 * What the operations of a batch on one collection make of its records, one after the other. Who uses it has the
 * collection alone, with tables that show all that was written before.
 */
export class Changes {
  readonly #place: { readonly database: Database; readonly schema: string }
  readonly #collection: CollectionState
  readonly #prepare: (sent: Sent) => Promise<Prepared>
  readonly #onlyNew: boolean
  /** Newest versions as far as they are known; undefined where there is none. */
  readonly #latest = new Map<string, Latest | undefined>()
  /** Names of new records, where only new ones are wanted. */
  readonly #names = new Set<string>()
  readonly #created: string[] = []

  constructor(
    place: { database: Database; schema: string; world: World },
    collection: CollectionState,
    strict: boolean,
  ) {
    this.#place = place
    this.#collection = collection
    this.#prepare = preparer(collection, place.world)
    this.#onlyNew = strict || collection.collection_type === 'event'
  }

  /** The versions that the operation makes. */
  async take(step: Step): Promise<Prepared[]> {
    const made =
      step.operation === 'create' ? [await this.#create(step.sent)] : await this.#change(step)
    for (const { key, deleted, body } of made) this.#latest.set(key, { deleted, body })
    return made
  }

  /** Refuses values of unique fields that are there, where only new records are wanted. */
  async refuseSame(): Promise<void> {
    if (!this.#onlyNew || this.#created.length === 0) return
    const { indexes, table, name } = this.#collection
    for (const { fields } of indexes.filter(({ unique }) => unique)) {
      const place = { schema: this.#place.schema, table, fields, bodies: this.#created }
      const [same] = await keysOfSameValues(this.#place.database, place)
      if (same !== undefined) throw exists(`The record ${same} of ${name} has the same ${fields}`)
    }
  }

  async #create(sent: Sent): Promise<Prepared> {
    const record = await this.#prepare(sent)
    if (!this.#onlyNew) return record
    const { name } = this.#collection
    const isThere = (await this.#newest(record.key)) !== undefined
    const taken = namesOf(record, this.#collection).find((one) => this.#names.has(one))
    if (isThere || taken !== undefined)
      throw exists(`${sent.title}: there is a record ${record.key} in ${name} already`, sent)
    for (const one of namesOf(record, this.#collection)) this.#names.add(one)
    this.#created.push(record.body)
    return record
  }

  async #change(step: Step): Promise<Prepared[]> {
    const { sent, key } = step
    if (step.conditions !== undefined) {
      const bodies = await this.#matching(step)
      const made: Prepared[] = []
      for (const latest of bodies) made.push(await this.#changed(step, latest))
      return made
    }
    const latest = key && (await this.#newest(key.text))
    if (latest === undefined || latest.deleted) {
      throw new Fault('RECORD_NOT_FOUND', {
        message: `${sent.title}: there is no record ${key?.text} in ${this.#collection.name}`,
        details: { field: sent.pointer, ...sent.details },
      })
    }
    return [await this.#changed(step, latest.body)]
  }

  async #changed({ operation, sent }: Step, latest: string): Promise<Prepared> {
    const merged = mergedText(latest, sent.text)
    if (operation === 'update') {
      return this.#prepare({ ...sent, text: merged, value: JSON.parse(merged) })
    }
    // What breaks a schema that came later can still be deleted.
    const body = mergedText(merged, '{"deleted":true}')
    refuseLarge(body, sent)
    return { key: this.#keyOf(body), deleted: true, body }
  }

  /** Newest versions of the records that match, as the operations before have left them. */
  async #matching({ conditions, key, sent }: Step): Promise<string[]> {
    const { table, primary_column } = this.#collection
    const only = key && { [primary_column]: { is: key.value } }
    const find = only ? { and: [only, conditions] } : conditions
    const found = await findLive(this.#place.database, this.#place.schema, {
      table,
      primaryColumn: primary_column,
      find,
      limit: limits.batchMatchesMax + 1,
    })
    const texts = found === undefined ? [] : itemTexts(`{"data":[${found}]}`, 'data')
    if (found === undefined || texts.length > limits.batchMatchesMax) {
      throw new Fault('RESULT_TOO_LARGE', {
        message: `${sent.title}/conditions match more than ${limits.batchMatchesMax} records, or more bytes than one block takes; narrow them`,
        details: { field: `${sent.title}/conditions`, matches_max: limits.batchMatchesMax },
      })
    }
    return texts.flatMap((text) => {
      const recordKey = this.#keyOf(text)
      if (!this.#latest.has(recordKey)) return [text]
      const latest = this.#latest.get(recordKey)
      return latest === undefined || latest.deleted ? [] : [latest.body]
    })
  }

  async #newest(key: string): Promise<Latest | undefined> {
    if (!this.#latest.has(key)) await this.load([key])
    return this.#latest.get(key)
  }

  /** Reads the newest versions of records that operations name, all in one query. */
  async load(keys: readonly string[]): Promise<void> {
    const { table } = this.#collection
    const rows = await latestOf(this.#place.database, { ...this.#place, table, keys })
    for (const key of keys) this.#latest.set(key, undefined)
    for (const { key, deleted, body } of rows) this.#latest.set(key, { deleted, body })
  }

  #keyOf(text: string): string {
    const record: unknown = JSON.parse(text)
    const { primary_column: primary } = this.#collection
    return recordKey(isRecord(record) ? ownValue(record, primary) : undefined, `/${primary}`)
  }
}

function exists(message: string, sent?: Sent): Fault {
  return new Fault('RECORD_EXISTS', {
    message,
    ...(sent && { details: { field: sent.pointer, ...sent.details } }),
  })
}
