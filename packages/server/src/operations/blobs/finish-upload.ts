import { Fault } from '../../base/fault.ts'
import type { Operation } from '../operation.ts'
import { readResult } from './describe-upload.ts'
import { endUpload } from './end-upload.ts'
import type { BlobParts } from './sell-upload.ts'

export const finishUpload: Operation<'finishUpload', BlobParts> = async (
  call,
  { params, query },
) => {
  const { service } = call
  const { open, uploads } = service.blobs
  const tenant = await service.tenants.load(params.app)
  const target = { tenant, collection: params.collection }
  const { id } = open.require(target, params.upload)
  return open.run(id, async () => {
    const file = open.require(target, id)
    const { isWhole, length, result } = file.facts
    if (!isWhole)
      throw new Fault('CONFLICT', {
        message: `The upload is at ${file.offset} of ${length} bytes; send the others first`,
        details: { offset: file.offset },
      })
    const stored = readResult(result)
    if (stored !== undefined) {
      // Its last bytes may have stored it a moment ago, before the tables show it.
      if (query.wait === true) await tenant.chain.whenApplied(tenant.chain.head().height)
      return { ...stored, status: 'Completed', message: 'The blob is stored' }
    }
    // The whole file is read for its hash, also for one who does not pay.
    const occupy = () => uploads.occupy(params.app)
    const opened = await open.open(target, file)
    return endUpload(call, { ...target, ...opened, wait: query.wait === true, occupy })
  })
}
