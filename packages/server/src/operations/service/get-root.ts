import type { Operation } from '../operation.ts'

export const getRoot: Operation<'getRoot'> = async ({ service }) => ({
  status: 'ok',
  version: service.info.version,
})
