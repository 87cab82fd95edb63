import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord, ownValue } from '../../base/is-record.ts'
import { itemTexts, memberText } from '../../base/json-text.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { dataSetNames } from '../../query/condition.ts'
import { parseFind } from '../../query/find.ts'
import { recordKey, type Sent } from '../../services/records/prepare-records.ts'

type Operation = Input<Tollbase['executeBatch']>['body']['operations'][number]

/** An operation of a batch, checked as far as it can be without the records. */
export type Step = {
  readonly operation: Operation['operation']
  /** Name of the collection. */
  readonly collection: string
  /** What is laid over a record, or is one; how refusals name it. */
  readonly sent: Sent
  /** As sent; the grammar of `find`. */
  readonly conditions: unknown
  /** The primary key that `data` gives, as sent, and as text. */
  readonly key: { readonly value: string | number; readonly text: string } | undefined
  /** Bytes of the operation's text. */
  readonly bytes: number
}

/** Reads a batch, or refuses it, naming the first operation at fault. */
export function readSteps(
  request: { readonly text: string; readonly operations: readonly Operation[] },
  catalog: Catalog,
): Step[] {
  const texts = itemTexts(request.text, 'operations')
  return request.operations.map((one, at) => {
    const text = texts[at] ?? ''
    const collection = catalog.byName.get(one.collection)
    refuseType(one, { collection, pointer: `/operations/${at}` })
    const sent: Sent = {
      value: one.data,
      text: (one.data && memberText(text, 'data')) ?? '{}',
      pointer: `/operations/${at}/data`,
      title: `/operations/${at}`,
      details: { operation: at },
    }
    const step: Step = {
      operation: one.operation,
      collection: one.collection,
      sent,
      conditions: one.conditions ?? undefined,
      key: keyIn(one, { primary: collection?.primary_column ?? 'id', sent }),
      bytes: Buffer.byteLength(text),
    }
    refuseUnaddressed(step)
    return step
  })
}

/** Records of an event collection are never changed, and blobs and APIs have none of their own. */
function refuseType(
  { operation }: Operation,
  { collection, pointer }: { collection: CollectionState | undefined; pointer: string },
): void {
  const type = collection?.collection_type ?? 'document'
  if (type === 'document' || (type === 'event' && operation === 'create')) return
  throw new Fault('CONFLICT', {
    message: `${pointer}: ${operation} is not possible in ${collection?.name}, which is of type ${type}`,
    details: { field: `${pointer}/operation` },
  })
}

function keyIn(
  { operation, data }: Operation,
  { primary, sent }: { primary: string; sent: Sent },
): Step['key'] {
  const value = isRecord(data) ? ownValue(data, primary) : undefined
  // Of a record to be made, the key is judged with all the rest.
  if (value === undefined || operation === 'create') return undefined
  const text = recordKey(value, `${sent.pointer}/${primary}`)
  return { value: typeof value === 'number' ? value : text, text }
}

function refuseUnaddressed({ operation, sent, conditions, key }: Step): void {
  const at = `${sent.title}/conditions`
  if (operation !== 'delete' && !isRecord(sent.value))
    throw invalid(sent.pointer, 'must be an object')
  if (conditions !== undefined) {
    if (operation === 'create') throw invalid(at, 'are not for create')
    if (dataSetNames(parseFind(conditions, at)).length > 0)
      throw invalid(at, 'look into a data set, which conditions of a batch cannot do')
  } else if (operation !== 'create' && key === undefined) {
    throw invalid(sent.pointer, `must give the primary key of the record to ${operation}`)
  }
}
