import { limits } from '@tollbase/contract/limits'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { indexPathsMax } from '../../query/index-key.ts'

/** What any of the public clients' dialects asks for. */
export type IndexWish = {
  readonly name: string | undefined
  readonly fields: readonly string[]
  readonly indexType: string
  readonly unique: boolean
  /** Atomic units; what reads of the collection shall cost from now on. */
  readonly readPrice: { readonly per_access?: string; readonly per_kb?: string } | undefined
  readonly warning: string | undefined
}

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
  'integer',
  'object',
  'array',
]

/** Reads the body of an index creation: `field_name`, `field` or `fields`; `index_type` or `type`; nested `index_config`. */
export function readIndexWish(body: Readonly<Record<string, unknown>>): IndexWish {
  const config = isRecord(body.index_config) ? body.index_config : {}
  const options = isRecord(body.options) ? body.options : {}
  const sent = body.index_type ?? body.type ?? config.index_type ?? 'btree'
  if (typeof sent !== 'string') throw invalid('/index_type', 'must be text')
  const indexType = sent.toLowerCase()
  if (indexType === 'price')
    throw new Fault('NOT_IMPLEMENTED', {
      message: 'Price indexes (writes priced by a field) are not built yet',
    })
  if (!types.includes(indexType)) throw invalid('/index_type', `must be one of ${types.join(', ')}`)
  const unique = [body.unique_constraint, body.unique, options.unique].some((one) => one === true)
  return {
    name:
      typeof body.name === 'string' && body.name !== ''
        ? body.name.slice(0, limits.nameCharsMax)
        : undefined,
    fields: readFields(body),
    indexType,
    unique: unique || indexType === 'unique' || indexType === 'primary',
    readPrice: readPrice(body.read_price_config),
    warning:
      indexType === 'fulltext'
        ? 'full-text search is not built yet; this is a plain index'
        : undefined,
  }
}

function readFields(body: Readonly<Record<string, unknown>>): string[] {
  const one = body.field_name ?? body.field
  const list = Array.isArray(body.fields) && body.fields.length > 0 ? body.fields : [one]
  if (list.length > indexPathsMax) throw invalid('/fields', `must be at most ${indexPathsMax}`)
  return list.map((field: unknown) => {
    if (typeof field !== 'string') throw invalid('/field_name', 'must be the name of a field')
    return parseFieldPath(field, '/field_name').join('.')
  })
}

const microUnits = 1_000_000

/** The clients write whole tokens as floats (0.001), or millionths as integers. */
function readPrice(config: unknown): IndexWish['readPrice'] {
  if (!isRecord(config)) return undefined
  const perAccess = amountOf(config, 'price_per_access')
  const perKb = amountOf(config, 'price_per_kb')
  if (perAccess === undefined && perKb === undefined) return undefined
  return {
    ...(perAccess !== undefined && { per_access: perAccess }),
    ...(perKb !== undefined && { per_kb: perKb }),
  }
}

function amountOf(config: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const whole = config[`${name}_tia`]
  if (whole !== undefined && whole !== null) {
    if (typeof whole !== 'number' || !(whole >= 0))
      throw invalid(`/read_price_config/${name}_tia`, 'must be a number of 0 or more')
    const atomic = Math.round(whole * microUnits)
    if (Math.abs(atomic / microUnits - whole) > 1e-12)
      throw invalid(`/read_price_config/${name}_tia`, 'has more than six decimals')
    return String(atomic)
  }
  const atomic = config[name]
  if (atomic === undefined || atomic === null) return undefined
  if (!/^(0|[1-9][0-9]{0,15})$/.test(String(atomic)))
    throw invalid(`/read_price_config/${name}`, 'must be whole atomic units')
  return String(atomic)
}
