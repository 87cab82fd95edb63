import { recordProofType } from '@tollbase/verify/proof'
import { Fault } from '../../base/fault.ts'
import type { Chain } from '../../chain/chain.ts'
import type { EntryPlace } from '../../chain/entry-reader.ts'
import { hashLeaf } from '../../chain/merkle.ts'
import { getReadPrice, isFree } from '../../model/find-price.ts'
import type { Collection } from '../../model/readable.ts'
import { makeSourceName } from '../../model/source-names.ts'
import {
  printVersionIn,
  type RecordPlace,
  readRecord,
  type Version,
} from '../../projections/read-records.ts'
import { type Caller, canDescribe, refuseWithoutRead } from '../access/access.ts'
import {
  type ReadableSource,
  refuseUnoffered,
  requireReadableCollection,
} from '../access/find-sources.ts'
import { findAnchorProof } from '../anchoring/prove-anchor.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { Call, Uses } from '../call.ts'
import { listStoredKeys } from '../encryption/read-opened.ts'
import { type BoughtReply, requireKeptReply } from '../payments/replies/kept-reply.ts'
import { readSqlReplyEnd } from '../reading/prepare-sql-read.ts'
import { makeFreeTurn } from '../reading/query-turn.ts'
import { runRead } from '../reading/run-query.ts'

type ProofRequest = {
  readonly collection: string
  readonly key: string
  readonly receipt_id?: string
}

/** The parts of the service by which a record is proved. */
export type ProofParts = 'database' | 'tenants' | 'queryRunner'

type ProvenVersion = { readonly tenant: Tenant; readonly version: Version }

/**
 * Proves a record: with its bytes for callers that read it free, with hashes alone for all others. The proof of a
 * sold record is for its buyers: even the existence of a record with this key has its price.
 */
export async function proveRecord(call: Call<ProofParts>, tenant: Tenant, request: ProofRequest) {
  const { collection, free } = requireProvable(call.caller, tenant, request)
  if (free) {
    const version = await requireNewest(call, tenant, { collection, request })
    return proveVersion(call, { tenant, version, content: 'entry' })
  }
  if (request.receipt_id !== undefined)
    return proveBought(call, tenant, {
      collection,
      key: request.key,
      receiptId: request.receipt_id,
    })
  const version = await requireNewest(call, tenant, { collection, request })
  if (version.deleted) throw makeNoRecordFault(collection, request.key)
  return proveVersion(call, { tenant, version, content: 'hash' })
}

/** The collection if the caller may have proofs of its records, with a receipt or without. */
export function requireProvable(
  caller: Caller,
  tenant: Tenant,
  request: Omit<ProofRequest, 'key'>,
): ReadableSource<Collection> {
  const readable = requireReadableCollection(caller, tenant, request.collection)
  const { collection, free } = readable
  if (free) return readable
  refuseUnoffered(collection, { filter: [collection.primary_column], sort: [], select: [] }, false)
  const isSold = !isFree(getReadPrice(tenant.data.catalog, collection))
  if (isSold && request.receipt_id === undefined && !canDescribe(caller, tenant.application)) {
    refuseWithoutRead(caller, tenant.application)
    throw new Fault('UNAUTHORIZED', {
      message: `Records of ${collection.name} are sold: their proofs are for keys of ${tenant.application.app_id} with Read, and for buyers who send the receipt_id`,
    })
  }
  return readable
}

type ProvenChain = { readonly app: string; readonly chain: Chain }

/**
 * The proof of an entry, as `tollbase verify` reads it: with the entry, or with its leaf hash in its place, which is
 * all that an erased entry has.
 */
export async function proveEntry(
  service: Uses<'database' | 'tenants'>,
  { app, chain }: ProvenChain,
  {
    content,
    signal,
    ...place
  }: EntryPlace & {
    readonly content: 'entry' | 'hash'
    /** Aborted once nobody waits for the proof. */
    readonly signal: AbortSignal
  },
) {
  const proof = await (content === 'entry'
    ? chain.prove(place, signal)
    : chain.proveHash(place, signal))
  const anchor = await findAnchorProof(service, { app, chain, leafIndex: proof.leaf_index })
  return { type: recordProofType, app, ...proof, ...(anchor && { anchor }) }
}

function proveVersion(
  { service, requestInfo }: Call<'database' | 'tenants'>,
  { tenant, version, content }: ProvenVersion & { readonly content: 'entry' | 'hash' },
) {
  const { application, chain } = tenant
  const { height, sequence } = version
  const signal = requestInfo.context.getAbortSignal()
  const at = { height: Number(height), sequence, content, signal }
  return proveEntry(service, { app: application.app_id, chain }, at)
}

async function requireNewest(
  { service }: Call<'database'>,
  tenant: Tenant,
  { collection, request }: { readonly collection: Collection; readonly request: ProofRequest },
): Promise<Version> {
  // The proof is of what was hashed, which for an encrypted collection is the envelope.
  const [key = request.key] = await listStoredKeys(tenant, collection, [request.key])
  const place = { schema: tenant.schema, table: collection.table, key }
  const { version } = await readRecord(service.database, place)
  if (version === undefined) throw makeNoRecordFault(collection, request.key)
  return version
}

/**
 * Proves the version that a kept reply holds. A receipt may be shown to others, so it fetches no content: with the
 * entry's header the buyer makes the leaf from the record.
 */
async function proveBought(
  call: Call<ProofParts>,
  tenant: Tenant,
  bought: {
    readonly collection: Collection
    readonly key: string
    readonly receiptId: string
  },
) {
  const { collection, key, receiptId } = bought
  const { service } = call
  const reply = await requireKeptReply(service, receiptId, tenant.application.app_id)
  const isGiven = isOfRecords(reply, tenant.application.app_id, collection)
  const place = { schema: tenant.schema, table: collection.table, key }
  const version = isGiven ? await findVersionIn(call, tenant, { place, reply }) : undefined
  if (version === undefined)
    throw new Fault('RECORD_NOT_FOUND', {
      message: `The reply that ${receiptId} bought does not hold a record ${key} of ${collection.name} whole`,
    })
  const { entry, ...proof } = await proveVersion(call, { tenant, version, content: 'entry' })
  // The version may have expired since it was read.
  if (entry === undefined) throw makeNoRecordFault(collection, key)
  const bytes = Buffer.from(entry, 'base64')
  const entry_header = bytes.toString('utf8', 0, bytes.indexOf('\n'))
  return { ...proof, leaf_hash: hashLeaf(bytes).toString('hex'), entry_header }
}

/** Finds the newest version of a record that an answer holds whole: mostly the one of now, which is found by an index. */
async function findVersionIn(
  call: Call<'database' | 'queryRunner'>,
  { application }: Tenant,
  { place, reply: { body } }: { readonly place: RecordPlace; readonly reply: BoughtReply },
): Promise<Version | undefined> {
  const { database, queryRunner } = call.service
  const { version: newest } = await readRecord(database, place)
  if (newest?.deleted === false && body.includes(newest.body)) return newest
  const turn = makeFreeTurn(call, application.app_id)
  const statement = printVersionIn(place, body.toString())
  const [version] = await runRead<Version>(queryRunner, statement, { isHeavy: true, turn })
  return version
}

/**
 * Returns whether all that looks like a record in a bought answer was given as one, by this collection's application
 * alone. Otherwise its buyer could put guesses there, by a statement or by joined records of another application, and
 * a proof would tell which of them is right.
 */
function isOfRecords(
  { body, sources, measured = [], operation }: BoughtReply,
  app: string,
  { id }: Collection,
): boolean {
  const isOwn = sources.every((source) => source.startsWith(makeSourceName(app, '')))
  // Groups and other derived answers have no part that is measured by rows.
  if (!isOwn || !sources.includes(makeSourceName(app, id)) || !measured.some(isByRows)) return false
  if (operation !== 'sql') return true
  return wholeRecords.test(readSqlReplyEnd(body).query)
}

/** The beginning of a statement that gives records whole; one that is measured by rows has one collection. */
const wholeRecords = /^\s*select\s+(?:"?\w+"?\s*\.\s*)?\*\s+from\s/i

function isByRows({ by }: { readonly by: string }): boolean {
  return by === 'rows'
}

function makeNoRecordFault({ name }: Collection, key: string): Fault {
  return new Fault('RECORD_NOT_FOUND', { message: `There is no record ${key} in ${name}` })
}
