import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import { decodeEntry } from '@tollbase/verify/entry'
import { Fault, makeInvalidFault } from '../../base/fault.ts'
import type { Chain } from '../../chain/chain.ts'
import type { EntryPlace } from '../../chain/entry-reader.ts'
import { isOpen } from '../../model/read-level.ts'
import { canDescribe } from '../../services/access/access.ts'
import type { Call } from '../../services/call.ts'
import { type ProofParts, proveEntry, proveRecord } from '../../services/records/record-proof.ts'
import type { Operation } from '../operation.ts'
import { requireVisibleChain } from './visible-chain.ts'

export const getEntryProof: Operation<'getEntryProof', ProofParts> = async (
  call,
  { params, query },
) => {
  const chain = await requireVisibleChain(call, params.app)
  const { height, sequence, key, collection, receipt_id } = query
  if (collection !== undefined && key !== undefined && height === undefined) {
    const tenant = await call.service.tenants.load(params.app)
    return proveRecord(call, tenant, {
      collection,
      key,
      ...(receipt_id !== undefined && { receipt_id }),
    })
  }
  if (height === undefined || sequence === undefined) throw makeUnnamedFault(query)
  const signal = call.requestInfo.context.getAbortSignal()
  const place = { height, sequence, signal }
  await refuseClosed(call, params.app, { chain, ...place })
  const proven = { app: params.app, chain }
  if (await isOwn(call, params.app)) {
    const whole = await proveEntry(call.service, proven, { ...place, content: 'entry' })
    if (isExpiry(whole.entry)) return whole
  }
  return proveEntry(call.service, proven, { ...place, content: 'hash' })
}

async function isOwn({ service, caller }: Call<'tenants'>, app: string): Promise<boolean> {
  return app !== 'system' && canDescribe(caller, (await service.tenants.load(app)).application)
}

/** An entry that says what has expired names places and no content: its owner may show it as it is. */
function isExpiry(entry: string | undefined): boolean {
  return entry !== undefined && decodeEntry(Buffer.from(entry, 'base64')).header.type === 'expire'
}

/** Strangers may learn of an entry only if it is a record that is open to them. */
async function refuseClosed(
  { service, caller }: Call<'tenants'>,
  app: string,
  { chain, signal, ...place }: EntryPlace & { readonly chain: Chain; readonly signal: AbortSignal },
): Promise<void> {
  if (app === 'system') return
  const { application, data } = await service.tenants.load(app)
  if (canDescribe(caller, application)) return
  const { bytes } = await chain.readEntry(place, signal)
  const { header } = decodeEntry(bytes)
  const collection = data.catalog.byId.get(String(header.collection))
  const isRecord = header.type === 'record' && collection !== undefined
  if (!isRecord || !isOpen(data.catalog, collection)) throw new Fault('NO_CHAIN_ENTRY')
}

function makeUnnamedFault({
  height,
  sequence,
  collection,
}: Input<Tollbase['getEntryProof']>['query']) {
  const missing =
    height !== undefined
      ? 'sequence'
      : sequence !== undefined
        ? 'height'
        : collection !== undefined
          ? 'key'
          : 'collection'
  return makeInvalidFault(
    `/query/${missing}`,
    'is needed: an entry is named by height and sequence, a record by collection and key',
  )
}
