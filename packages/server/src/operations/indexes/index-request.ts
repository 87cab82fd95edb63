import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { FieldPrice } from '../../model/definitions.ts'
import { isFullText } from '../../projections/index-ddl.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { indexPathsMax } from '../../query/index-key.ts'
import { parsePartial } from '../../query/partial-index.ts'
import { type ReadPrice, readFieldPrice, readReadPrice, readRecordPrice } from './price-request.ts'

/** What any of the public clients' dialects asks for. */
export type IndexWish = {
  readonly name: string | undefined
  readonly fields: readonly string[]
  readonly indexType: string
  readonly unique: boolean
  readonly sparse: boolean
  /** Conditions of a partial index, in the grammar of `find`. */
  readonly where: unknown
  /** A write of a record costs the value of the field. */
  readonly fieldPrice: FieldPrice | undefined
  /** Atomic units; what each record written shall cost from now on. */
  readonly recordPrice: string | undefined
  /** Atomic units; what reads of the collection shall cost from now on. */
  readonly readPrice: ReadPrice | undefined
  readonly warnings: readonly string[]
}

type Sent = Readonly<Record<string, unknown>>

const types = [
  'btree',
  'hash',
  'string',
  'number',
  'boolean',
  'date',
  'composite',
  'unique',
  'primary',
  'secondary',
  'fulltext',
  'price',
  'sparse',
  'partial',
  'integer',
  'object',
  'array',
]

/** Reads the body of an index creation: `field_name`, `field` or `fields`; `index_type` or `type`; nested `index_config`. */
export function readIndexWish(body: Sent): IndexWish {
  const config = isRecord(body.index_config) ? body.index_config : {}
  const options = isRecord(body.options) ? body.options : {}
  const indexType = readType(body.index_type ?? body.type ?? config.index_type ?? 'btree')
  const says = (name: 'unique' | 'sparse') => body[name] === true || options[name] === true
  const unique =
    body.unique_constraint === true ||
    says('unique') ||
    indexType === 'unique' ||
    indexType === 'primary'
  const wish: IndexWish = {
    name:
      typeof body.name === 'string' && body.name !== ''
        ? body.name.slice(0, limits.nameCharsMax)
        : undefined,
    fields: readFields(body),
    indexType,
    unique,
    sparse: says('sparse') || indexType === 'sparse',
    where: readWhere(body, options),
    fieldPrice: indexType === 'price' ? readFieldPrice(body.price_config) : undefined,
    recordPrice: readRecordPrice(body.price_config),
    readPrice: readReadPrice(body.read_price_config),
    warnings: warningsOf(body, { options, indexType }),
  }
  refuseMixture(wish, body)
  return wish
}

function readType(sent: unknown): string {
  if (typeof sent !== 'string') throw invalid('/index_type', 'must be text')
  const indexType = sent.toLowerCase()
  if (!types.includes(indexType)) throw invalid('/index_type', `must be one of ${types.join(', ')}`)
  return indexType
}

function readFields(body: Sent): string[] {
  const one = body.field_name ?? body.field
  const list = Array.isArray(body.fields) && body.fields.length > 0 ? body.fields : [one]
  if (list.length > indexPathsMax) throw invalid('/fields', `must be at most ${indexPathsMax}`)
  const fields = list.map((field: unknown) => {
    if (typeof field !== 'string') throw invalid('/field_name', 'must be the name of a field')
    return parseFieldPath(field, '/field_name').join('.')
  })
  if (new Set(fields).size < fields.length) throw invalid('/fields', 'names a field twice')
  return fields
}

/** `where`, `partial: {where}`, or what the SDK calls `options.partialFilter`. */
function readWhere(body: Sent, options: Sent): unknown {
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
  return condition.kind === 'always' ? undefined : where
}

function refuseMixture(wish: IndexWish, body: Sent): void {
  const { indexType, unique, where, fields } = wish
  const isPrice = wish.fieldPrice !== undefined
  if (indexType === 'partial' && where === undefined)
    throw invalid('/where', 'is needed: the records of a partial index')
  if (unique && where !== undefined)
    throw invalid('/where', 'is not for a unique index, which is over all records')
  if (unique && isFullText(indexType)) throw invalid('/index_type', 'fulltext cannot be unique')
  if (isPrice && fields.length > 1) throw invalid('/fields', 'of a price index must be one')
  if (isPrice && where !== undefined)
    throw invalid('/where', 'is not for a price index: every record is paid for')
  if (!isPrice && wish.recordPrice === undefined && isRecord(body.price_config))
    throw invalid('/price_config', 'is for an index of type price, or of pricing_model per_record')
}

function warningsOf(
  body: Sent,
  { options, indexType }: { options: Sent; indexType: string },
): string[] {
  const language = options.defaultLanguage
  return [
    ...(isFullText(indexType) && typeof language === 'string' && !plainLanguages.includes(language)
      ? ['words are compared as they are written, whatever the language']
      : []),
    ...(isRecord(body.creator_premium_config)
      ? ['creator_premium_config has no effect; set a write price instead']
      : []),
  ]
}

const plainLanguages = ['none', 'simple']
