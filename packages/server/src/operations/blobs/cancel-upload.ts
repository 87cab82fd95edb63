import { refuseOtherVersion } from '../../http/tus.ts'
import type { Operation } from '../operation.ts'
import { makeEmptyReply } from './describe-upload.ts'

export const cancelUpload: Operation<'cancelUpload', 'tenants' | 'blobs'> = async (
  { service, requestInfo },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  const { open } = service.blobs
  const file = open.require({ tenant, collection: params.collection }, params.upload)
  refuseOtherVersion(requestInfo)
  await open.run(file.id, () => open.remove(file))
  return makeEmptyReply(undefined)
}
