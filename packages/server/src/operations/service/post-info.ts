import { interfaceVersion } from '@tollbase/contract/contract'
import { areas } from '@tollbase/contract/route'
import type { Operation } from '../operation.ts'

export const postInfo: Operation<'postInfo', 'program'> = async ({ service }) => ({
  name: 'tollbase',
  version: service.program.version,
  interface_version: interfaceVersion,
  areas: [...areas],
  started_at: new Date(service.program.startedAtMs).toISOString(),
})
