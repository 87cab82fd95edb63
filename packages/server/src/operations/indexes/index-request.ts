import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { FieldPrice } from '../../model/definitions.ts'
import { findIndexKind, getServedBy, indexKindNames, isByValue } from '../../model/index-kinds.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { type IndexedVectors, indexPathsMax } from '../../query/index-key.ts'
import { findMeasure } from '../../query/nearest.ts'
import { parsePartial, refuseLongPartial } from '../../query/partial-index.ts'
import { indexedNumbersMax } from '../../query/single-vector.ts'
import {
  parseFieldPrice,
  parseReadPrice,
  parseRecordPrice,
  type ReadPrice,
} from './price-request.ts'

/** A request for an index, whichever public client's dialect it was written in. */
export type IndexRequest = {
  readonly name: string | undefined
  readonly fields: readonly string[]
  readonly indexType: string
  readonly unique: boolean
  readonly sparse: boolean
  /** Conditions of a partial index, in the grammar of `find`. */
  readonly where: unknown
  /** The lists of an index of vectors. */
  readonly vectors: IndexedVectors | undefined
  /** A write of a record costs the value of the field. */
  readonly fieldPrice: FieldPrice | undefined
  /** The new price of each record written, in atomic units. */
  readonly recordPrice: string | undefined
  /** The new price of reads of the collection, in atomic units. */
  readonly readPrice: ReadPrice | undefined
  readonly warnings: readonly string[]
}

type IndexRequestBody = Readonly<Record<string, unknown>>

/**
 * Reads the body of an index creation: `field_name`, `field` or `fields`; `index_type` or `type`; nested
 * `index_config`.
 */
export function parseIndexRequest(body: IndexRequestBody): IndexRequest {
  const config = isRecord(body.index_config) ? body.index_config : {}
  const options = isRecord(body.options) ? body.options : {}
  const indexType = readType(body.index_type ?? body.type ?? config.index_type ?? 'btree')
  const kind = findIndexKind(indexType)
  const says = (name: 'unique' | 'sparse') =>
    body[name] === true || options[name] === true || kind?.[name] === true
  const request: IndexRequest = {
    name:
      typeof body.name === 'string' && body.name !== ''
        ? body.name.slice(0, limits.nameCharsMax)
        : undefined,
    fields: readFields(body),
    indexType,
    unique: body.unique_constraint === true || says('unique'),
    sparse: says('sparse'),
    where: readWhere(body, options),
    vectors: readVectors(body, indexType),
    fieldPrice: kind?.priced ? parseFieldPrice(body.price_config) : undefined,
    recordPrice: parseRecordPrice(body.price_config),
    readPrice: parseReadPrice(body.read_price_config),
    warnings: listWarnings(body, { options, indexType }),
  }
  refuseMixture(request, body)
  return request
}

function readType(sent: unknown): string {
  if (typeof sent !== 'string') throw makeInvalidFault('/index_type', 'must be text')
  if (findIndexKind(sent) === undefined)
    throw makeInvalidFault('/index_type', `must be one of ${indexKindNames.join(', ')}`)
  return sent.toLowerCase()
}

function readFields(body: IndexRequestBody): string[] {
  const one = body.field_name ?? body.field
  const list = Array.isArray(body.fields) && body.fields.length > 0 ? body.fields : [one]
  if (list.length > indexPathsMax)
    throw makeInvalidFault('/fields', `must be at most ${indexPathsMax}`)
  const fields = list.map((field: unknown) => {
    if (typeof field !== 'string')
      throw makeInvalidFault('/field_name', 'must be the name of a field')
    return parseFieldPath(field, '/field_name').join('.')
  })
  if (new Set(fields).size < fields.length) throw makeInvalidFault('/fields', 'names a field twice')
  return fields
}

/** `where`, `partial: {where}`, or what the SDK calls `options.partialFilter`. */
function readWhere(body: IndexRequestBody, options: IndexRequestBody): unknown {
  const partial = isRecord(body.partial) ? body.partial.where : undefined
  const given = [
    ['/where', body.where],
    ['/partial/where', partial],
    ['/options/partialFilter', options.partialFilter],
  ] as const
  const [found] = given.filter(([, where]) => where !== undefined && where !== null)
  if (found === undefined) return undefined
  const [pointer, where] = found
  const condition = parsePartial(where, pointer)
  refuseLongPartial(condition, pointer)
  return condition.kind === 'always' ? undefined : where
}

/** Reads `dimensions` and `measure`, which only an index of vectors has. */
function readVectors(body: IndexRequestBody, indexType: string): IndexedVectors | undefined {
  const numbers = body.dimensions ?? undefined
  if (getServedBy(indexType) !== 'nearness') return undefined
  const measure = findMeasure(body.measure)
  if (measure === undefined)
    throw makeInvalidFault('/measure', 'must be cosine, l2 or inner_product')
  if (!Number.isInteger(numbers) || Number(numbers) < 1 || Number(numbers) > indexedNumbersMax)
    throw makeInvalidFault(
      '/dimensions',
      `must be the number of numbers in each list, from 1 to ${indexedNumbersMax}`,
    )
  return { numbers: Number(numbers), measure }
}

function refuseMixture(request: IndexRequest, body: IndexRequestBody): void {
  const { indexType, unique, where, fields } = request
  const isPrice = request.fieldPrice !== undefined
  if (findIndexKind(indexType)?.partial && where === undefined)
    throw makeInvalidFault('/where', 'is needed: the records of a partial index')
  if (unique && where !== undefined)
    throw makeInvalidFault('/where', 'is not for a unique index, which is over all records')
  if (unique && !isByValue(indexType))
    throw makeInvalidFault('/index_type', `${indexType} cannot be unique`)
  if (request.vectors !== undefined && fields.length > 1)
    throw makeInvalidFault('/fields', 'of a vector index must be one')
  if (request.vectors !== undefined && (where !== undefined || request.sparse))
    throw makeInvalidFault(
      '/where',
      'is not for a vector index, which has every list of its length',
    )
  if (isPrice && fields.length > 1)
    throw makeInvalidFault('/fields', 'of a price index must be one')
  if (isPrice && where !== undefined)
    throw makeInvalidFault('/where', 'is not for a price index: every record is paid for')
  if (!isPrice && request.recordPrice === undefined && isRecord(body.price_config))
    throw makeInvalidFault(
      '/price_config',
      'is for an index of type price, or of pricing_model per_record',
    )
}

function listWarnings(
  body: IndexRequestBody,
  { options, indexType }: { options: IndexRequestBody; indexType: string },
): string[] {
  const language = options.defaultLanguage
  return [
    ...(getServedBy(indexType) === 'words' &&
    typeof language === 'string' &&
    !plainLanguages.includes(language)
      ? ['words are compared as they are written, whatever the language']
      : []),
    ...(isRecord(body.creator_premium_config)
      ? ['creator_premium_config has no effect; set a write price instead']
      : []),
  ]
}

const plainLanguages = ['none', 'simple']
