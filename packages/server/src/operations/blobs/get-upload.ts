import { refuseOtherVersion } from '../../http/tus.ts'
import type { Operation } from '../operation.ts'
import { makeUploadReply } from './describe-upload.ts'

/** HEAD, by which clients ask where to go on, waits for the end of a request that still brings bytes, and ends it. */
export const getUpload: Operation<'getUpload', 'tenants' | 'blobs'> = async (
  { service, requestInfo },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  const file = service.blobs.open.require({ tenant, collection: params.collection }, params.upload)
  refuseOtherVersion(requestInfo)
  if (requestInfo.method === 'HEAD') await service.blobs.open.run(file.id, async () => undefined)
  return makeUploadReply(file)
}
