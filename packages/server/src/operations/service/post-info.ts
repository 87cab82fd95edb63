import { interfaceVersion } from '@tollbase/contract/contract'
import { areas } from '@tollbase/contract/route'
import type { Operation } from '../operation.ts'

export const postInfo: Operation<'postInfo'> = async ({ service }) => ({
  name: 'tollbase',
  version: service.info.version,
  interface_version: interfaceVersion,
  areas: [...areas],
  started_at: new Date(service.info.startedAtMs).toISOString(),
})
