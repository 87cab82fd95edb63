import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { requirePresent } from '../../base/assert.ts'
import { awaitTurn } from '../../base/await-turn.ts'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import { getOwnValue, isRecord } from '../../base/is-record.ts'
import type { JsonSource } from '../../base/json-source.ts'
import { findMemberText, iterateItemTexts } from '../../base/json-text.ts'
import type { Catalog } from '../../model/catalog.ts'
import type { Collection } from '../../model/readable.ts'
import { listDataSetNames } from '../../query/condition.ts'
import { parseFind } from '../../query/find.ts'
import { parseRecordKey, type SentRecord } from '../../services/records/prepare-records.ts'

type BatchOperation = Input<Tollbase['executeBatch']>['body']['operations'][number]

/** An operation of a batch, checked as far as it can be without the records. */
export type Step = {
  readonly operation: BatchOperation['operation']
  /** Name of the collection. */
  readonly collection: string
  /** The members laid over a record, or a whole record, with its name for refusals. */
  readonly sent: SentRecord
  /** As sent; the grammar of `find`. */
  readonly conditions: unknown
  /** The primary key that `data` gives, as sent, and as text. */
  readonly key: { readonly value: string | number; readonly text: string } | undefined
  /** Bytes of the operation's text. */
  readonly bytes: number
}

/** Characters of operations that are read without a pause. */
const charsAtOnce = 256 * 1024

/** Reads a batch, or refuses it, naming the first operation at fault. Other requests have their turns meanwhile. */
export async function readSteps(
  request: { readonly source: JsonSource; readonly operations: readonly BatchOperation[] },
  catalog: Catalog,
): Promise<Step[]> {
  const steps: Step[] = []
  let chars = 0
  for (const text of iterateItemTexts(request.source, 'operations')) {
    const at = steps.length
    const one = requirePresent(request.operations[at], 'an operation of the batch')
    steps.push(readStep(one, { text, at, catalog }))
    chars += text.length
    if (chars < charsAtOnce) continue
    chars = 0
    await awaitTurn()
  }
  return steps
}

function readStep(
  one: BatchOperation,
  { text, at, catalog }: { readonly text: string; readonly at: number; readonly catalog: Catalog },
): Step {
  const collection = catalog.byName.get(one.collection)
  refuseType(one.operation, { collection, pointer: `/operations/${at}` })
  const sent: SentRecord = {
    value: one.data,
    text: (one.data && findMemberText(text, 'data')) ?? '{}',
    pointer: `/operations/${at}/data`,
    title: `/operations/${at}`,
    details: { operation: at },
  }
  const step: Step = {
    operation: one.operation,
    collection: one.collection,
    sent,
    conditions: one.conditions ?? undefined,
    key: findKey(one, { primary: collection?.primary_column ?? 'id', sent }),
    bytes: Buffer.byteLength(text),
  }
  refuseUnaddressed(step)
  return step
}

/** Records of an event collection are never changed, and blobs and APIs have none of their own. */
export function refuseType(
  operation: BatchOperation['operation'],
  { collection, pointer }: { collection: Collection | undefined; pointer: string },
): void {
  const type = collection?.collection_type ?? 'document'
  if (type === 'document' || (type === 'event' && operation === 'create')) return
  throw new Fault('CONFLICT', {
    message: `${pointer}: ${operation} is not possible in ${collection?.name}, which is of type ${type}`,
    details: { field: `${pointer}/operation` },
  })
}

function findKey(
  { operation, data }: BatchOperation,
  { primary, sent }: { primary: string; sent: SentRecord },
): Step['key'] {
  const value = isRecord(data) ? getOwnValue(data, primary) : undefined
  // The key of a record to be created is checked with the rest of the record.
  if (value === undefined || operation === 'create') return undefined
  const text = parseRecordKey(value, `${sent.pointer}/${primary}`)
  return { value: typeof value === 'number' ? value : text, text }
}

function refuseUnaddressed({ operation, sent, conditions, key }: Step): void {
  const at = `${sent.title}/conditions`
  if (operation !== 'delete' && !isRecord(sent.value))
    throw makeInvalidFault(sent.pointer, 'must be an object')
  if (conditions !== undefined) {
    if (operation === 'create') throw makeInvalidFault(at, 'are not for create')
    if (listDataSetNames(parseFind(conditions, at)).length > 0)
      throw makeInvalidFault(at, 'use a data set, which the conditions of a batch cannot do')
  } else if (operation !== 'create' && key === undefined) {
    throw makeInvalidFault(sent.pointer, `must give the primary key of the record to ${operation}`)
  }
}
