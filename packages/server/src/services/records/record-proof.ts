import { recordProofType } from '@tollbase/verify/proof'
import { leafHash } from '@tollbase/verify/tree'
import { Fault } from '../../base/fault.ts'
import type { Chain } from '../../chain/chain.ts'
import type { CollectionState } from '../../model/definitions.ts'
import { isFree, readPriceOf } from '../../model/price.ts'
import { readHistory, readRecord, type Version } from '../../projections/record-store.ts'
import { mayDescribe, refuseWithoutRead } from '../access/access.ts'
import {
  type Readable,
  readableCollection,
  refuseUnoffered,
} from '../access/authorize-collections.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'
import { boughtReply } from '../payments/bought-reply.ts'

type Wish = {
  readonly collection: string
  readonly key: string
  readonly receipt_id?: string
}

type Found = { readonly tenant: Tenant; readonly version: Version }

/**
 * The proof of a record: with its bytes for who reads it free, with hashes alone for all others. Of what is sold a proof
 * is for who bought the record: even that there is one of this key has its price.
 */
export async function proveRecord(call: Call, tenant: Tenant, wish: Wish) {
  const { collection, free } = provable(call, tenant, wish)
  if (free) {
    const version = await newest(call, tenant, { collection, wish })
    return proofOfVersion({ tenant, version })
  }
  if (wish.receipt_id !== undefined)
    return boughtProof(call, tenant, { collection, key: wish.key, receiptId: wish.receipt_id })
  const version = await newest(call, tenant, { collection, wish })
  if (version.deleted) throw noSuchRecord(collection, wish.key)
  return hashesOf(await proofOfVersion({ tenant, version }))
}

/** The collection if the caller may have proofs of its records, with a receipt or without. */
export function provable(call: Call, tenant: Tenant, wish: Omit<Wish, 'key'>): Readable {
  const readable = readableCollection(call, tenant, wish.collection)
  const { collection, free } = readable
  if (free) return readable
  refuseUnoffered(collection, { filter: [collection.primary_column], sort: [], select: [] }, false)
  const { caller } = call
  const isSold = !isFree(readPriceOf(tenant.data.catalog, collection))
  if (isSold && wish.receipt_id === undefined && !mayDescribe(caller, tenant.application)) {
    refuseWithoutRead(caller, tenant.application)
    throw new Fault('UNAUTHORIZED', {
      message: `Records of ${collection.name} are sold: their proofs are for keys of ${tenant.application.app_id} that may Read, and for who bought them (receipt_id)`,
    })
  }
  return readable
}

/** The proof without what the entry says. */
export function hashesOf({ entry, ...proof }: Awaited<ReturnType<typeof proofOf>>) {
  const leaf_hash = Buffer.from(leafHash(Buffer.from(entry, 'base64'))).toString('hex')
  return { ...proof, leaf_hash }
}

/** The whole proof of an entry, as `tollbase verify` reads it. */
export async function proofOf(
  { app, chain }: { readonly app: string; readonly chain: Chain },
  at: { readonly height: number; readonly sequence: number },
) {
  return { type: recordProofType, app, ...(await chain.prove(at.height, at.sequence)) }
}

function proofOfVersion({ tenant, version }: Found) {
  const { application, chain } = tenant
  const { height, sequence } = version
  return proofOf({ app: application.app_id, chain }, { height: Number(height), sequence })
}

async function newest(
  { service }: Call,
  { schema }: Tenant,
  { collection, wish }: { readonly collection: CollectionState; readonly wish: Wish },
): Promise<Version> {
  const place = { schema, table: collection.table, key: wish.key }
  const { version } = await readRecord(service.database, place)
  if (version === undefined) throw noSuchRecord(collection, wish.key)
  return version
}

/**
 * The proof of the version that a kept reply holds. A receipt may be shown to others, so it fetches no content: with the
 * entry's header the buyer makes the leaf from the record that he has.
 */
async function boughtProof(
  { service }: Call,
  tenant: Tenant,
  bought: {
    readonly collection: CollectionState
    readonly key: string
    readonly receiptId: string
  },
) {
  const { collection, key, receiptId } = bought
  const reply = await boughtReply(service, receiptId, tenant.application.app_id)
  const place = { schema: tenant.schema, table: collection.table, key }
  const { versions } = await readHistory(service.database, place)
  const version = versions.findLast(({ deleted, body }) => !deleted && reply.includes(body))
  if (version === undefined)
    throw new Fault('RECORD_NOT_FOUND', {
      message: `The reply that ${receiptId} bought does not hold a record ${key} of ${collection.name} whole`,
    })
  const proof = await proofOfVersion({ tenant, version })
  const text = Buffer.from(proof.entry, 'base64').toString()
  return { ...hashesOf(proof), entry_header: text.slice(0, text.indexOf('\n')) }
}

function noSuchRecord({ name }: CollectionState, key: string): Fault {
  return new Fault('RECORD_NOT_FOUND', { message: `There is no record ${key} in ${name}` })
}
