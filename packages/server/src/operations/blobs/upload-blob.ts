import { toJsonSource } from '../../base/json-source.ts'
import { refuseUnknown } from '../../base/known-members.ts'
import { type Form, readForm } from '../../http/upload.ts'
import type { BlobFacts } from '../../model/blob.ts'
import type { FileSealing } from '../../sealing/segments.ts'
import { type ReceivedBlob, takeBlob } from '../../services/blobs/sealed-blobs.ts'
import type { Call } from '../../services/call.ts'
import { proofMembers } from '../../services/payments/presented/body-proof.ts'
import { hasPayment } from '../../services/payments/presented/presented-payment.ts'
import type { Operation } from '../operation.ts'
import { refuseOtherType } from './require-blobs.ts'
import {
  type BlobParts,
  findRowShape,
  isUploadFree,
  isUploadSealed,
  prepareBlobRow,
  refuseWithoutPlace,
  sellUpload,
} from './sell-upload.ts'

export const uploadBlob: Operation<'uploadBlob', BlobParts> = async (call, { params, query }) => {
  const { service } = call
  const { collection } = params
  const tenant = await service.tenants.load(params.app)
  const known = tenant.data.catalog.byName.get(collection)
  if (known !== undefined) refuseOtherType(known)
  // A payment, which may be in the form, may have bought its answer before, so it is looked at first.
  if (isUploadFree(tenant, collection) && !hasPayment(call))
    refuseWithoutPlace(service, tenant, collection)
  const sealing = isUploadSealed(tenant, collection) ? tenant.sealer.makeFileSealing() : undefined
  const leave = service.blobs.uploads.occupy(params.app)
  try {
    const form = await receive(call, sealing)
    const { blob, facts } = form.taken
    try {
      refuseUnknown(knownFields, Object.fromEntries(form.fields), '')
      // As it is by now: the body may have taken minutes.
      const shape = findRowShape(tenant, collection)
      const metadata = form.fields.get('metadata')
      const row = { ...facts, contentSha256: blob.contentSha256, metadata }
      const record = await prepareBlobRow(service.world, row, shape)
      const wait = query.wait === true
      const upload = { tenant, collection, blob, sealing, record, shape, wait }
      return await sellUpload(call, upload, describeRequest(call, form))
    } finally {
      await blob.file.discard()
    }
  } finally {
    leave()
  }
}

/** The public clients send more beside the blob: a proof of payment, as they put it into a store too. */
const knownFields = {
  members: new Map([...['metadata'], ...proofMembers].map((name) => [name, undefined])),
}

type Received = { readonly blob: ReceivedBlob; readonly facts: BlobFacts }

function receive(
  { service, requestInfo }: Call<BlobParts>,
  sealing: FileSealing | undefined,
): Promise<Form<Received>> {
  const { store, bytesMax } = service.blobs
  return readForm(requestInfo, {
    world: service.world,
    file: 'blob',
    fileBytesMax: bytesMax,
    take: async ({ stream, contentType, filename }) => {
      const blob = await takeBlob(store, stream, sealing)
      const { size, file } = blob
      return { blob, facts: { sha256: file.sha256, size, contentType, filename } }
    },
    drop: ({ blob }) => blob.file.discard(),
  })
}

/**
 * The request as a payment is bound to it. Two are the same where blob, metadata and names are, whatever their form: a
 * client that repeats it makes a new boundary for the same parts.
 */
function describeRequest(
  call: Call<BlobParts>,
  { taken, fields }: Form<Received>,
): Call<BlobParts> {
  const { sha256, contentType, filename } = taken.facts
  const { metadata = null, ...proof } = Object.fromEntries(fields)
  const text = JSON.stringify({ blob: sha256, contentType, filename, metadata, ...proof })
  const body = { source: toJsonSource(text), value: JSON.parse(text) }
  const requestInfo = { ...call.requestInfo, bodyBytes: Buffer.from(text), json: () => body }
  return { ...call, requestInfo }
}
